"use strict";(()=>{var e=localStorage.getItem("gpn-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e);})();
