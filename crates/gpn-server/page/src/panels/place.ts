// Renames a taught class, or moves it.

import type { App } from "../app";
import { fill, h, newId } from "../dom";
import { notice } from "../parts/notices";
import { ParentPicker } from "../parts/parents";
import type { ClassPage } from "../types";

export function editPlace(app: App, page: ClassPage, place: HTMLElement): void {
  const { class: entry } = page;
  const id = newId("name");
  const name = h("input", { id, class: "field", type: "text", value: entry.name, autocomplete: "off" });
  const picker = new ParentPicker(app, "It is a kind of");
  picker.set(page.parents);
  const close = () => fill(place);
  const save = async () => {
    const text = name.value.trim();
    const parents = picker.ids();
    const before = page.parents.map((parent) => parent.id);
    const moved = parents.length > 0 && (parents.length !== before.length || parents.some((parent) => !before.includes(parent)));
    try {
      let version = 0;
      if (moved) ({ version } = await app.api.move(entry.id, parents));
      if (text && text !== entry.name) ({ version } = await app.api.rename(entry.id, text));
      close();
      if (version === 0) return;
      await app.changed([entry.id, ...before, ...parents]);
      notice(moved ? `Moved ${text || entry.name}.` : `Renamed to ${text}.`, { action: { label: "Undo", act: () => void app.undo(version) } });
    } catch (error) {
      app.fail(error);
    }
  };
  fill(
    place,
    h(
      "form",
      {
        class: "card stack",
        onSubmit: (event: Event) => {
          event.preventDefault();
          void save();
        },
      },
      h("div", {}, h("label", { for: id, class: "label" }, "Name"), name),
      picker.element,
      h("div", { class: "row row-end" }, h("button", { type: "button", class: "button", onClick: close }, "Cancel"), h("button", { type: "submit", class: "button button-main" }, "Save")),
    ),
  );
  name.focus();
}
