// Sets the theme before the first paint. Without a choice the system decides.

const chosen = localStorage.getItem("gpn-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
