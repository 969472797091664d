// Notices that come and go, and the words that only screen readers get.

import { byId, h, icon } from "../dom";

const STAYS = 9000;

export interface Action {
  label: string;
  act(): void;
}

/** Shows a notice, with something to do about it. */
export function notice(text: string, options: { action?: Action; bad?: boolean } = {}): void {
  let timer = 0;
  const close = () => {
    clearTimeout(timer);
    toast.remove();
  };
  const arm = () => {
    clearTimeout(timer);
    timer = window.setTimeout(close, STAYS);
  };
  const { action } = options;
  const toast = h(
    "div",
    { class: options.bad ? "toast toast-bad" : "toast", onMouseenter: () => clearTimeout(timer), onMouseleave: arm, onFocusin: () => clearTimeout(timer), onFocusout: arm },
    h("p", {}, text),
    action &&
      h(
        "button",
        {
          type: "button",
          class: "toast-action",
          onClick: () => {
            close();
            action.act();
          },
        },
        action.label,
      ),
    h("button", { type: "button", class: "toast-close", "aria-label": "Close the notice", onClick: close }, icon("close")),
  );
  const region = byId("toasts");
  while (region.childElementCount > 2) region.firstElementChild?.remove();
  region.append(toast);
  announce(action ? `${text} ${action.label} is possible.` : text);
  arm();
}

/** Says something to screen readers alone. */
export function announce(text: string): void {
  const region = byId("announce");
  region.textContent = "";
  // A change of the text is read; the same text twice is not, unless it was gone in between.
  setTimeout(() => (region.textContent = text), 60);
}
