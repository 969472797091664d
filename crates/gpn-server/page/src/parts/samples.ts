// The samples that the server keeps of a class.

import type { Api } from "../api";
import { h, icon } from "../dom";
import type { KeptSample } from "../types";

/** A row of kept samples, with their images where there are any. */
export function keptSamples(api: Api, id: string, samples: (KeptSample & { distance?: number })[], note: (sample: KeptSample & { distance?: number }) => string): HTMLElement {
  return h(
    "ul",
    { class: "thumbs" },
    samples.map((sample) => h("li", {}, kept(api, id, sample), h("span", { class: "thumb-note", title: sample.name }, note(sample)))),
  );
}

function kept(api: Api, id: string, sample: KeptSample): HTMLElement {
  const empty = h("span", { class: "thumb thumb-none", role: "img", "aria-label": sample.name }, icon(sample.image ? "image" : "rows"));
  if (sample.image) {
    api.image(id, sample.number).then(
      (blob) => {
        const url = URL.createObjectURL(blob);
        const image = h("img", { class: "thumb", src: url, alt: sample.name });
        image.addEventListener("load", () => URL.revokeObjectURL(url));
        empty.replaceWith(image);
      },
      // The sign stays: an image that was not kept is no failure worth a notice.
      () => undefined,
    );
  }
  return empty;
}
