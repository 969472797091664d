// Asks for the token that the server wants. It stays in this session and in no address.

import { h, icon, newId } from "../dom";

export function askForToken(refused: boolean): Promise<string | null> {
  return new Promise((resolve) => {
    const id = newId("token");
    const title = newId("title");
    const input = h("input", { id, class: "field", type: "password", autocomplete: "off", spellcheck: "false", required: true });
    const done = (token: string | null) => {
      dialog.close();
      dialog.remove();
      resolve(token);
    };
    const form = h(
      "form",
      {
        class: "dialog-body",
        method: "dialog",
        onSubmit: (event: Event) => {
          event.preventDefault();
          const token = input.value.trim();
          if (token) done(token);
        },
      },
      h("h2", { id: title }, icon("key"), "This server asks for a token"),
      h("p", {}, refused ? "The token was not accepted. Try another one." : "Whoever runs the server can give you one. It is kept until you close this tab."),
      h("label", { for: id, class: "label" }, "Token"),
      input,
      h(
        "div",
        { class: "row row-end" },
        h("button", { type: "button", class: "button", onClick: () => done(null) }, "Not now"),
        h("button", { type: "submit", class: "button button-main" }, "Continue"),
      ),
    );
    const dialog = h("dialog", { class: "dialog", "aria-labelledby": title, onCancel: () => done(null) }, form);
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}
