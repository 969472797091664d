// Shows the operations of /api/openapi.json. Text is set as text, never as markup.
"use strict";

function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

// A schema with its references followed, down to some depth.
function resolved(schema, all, depth) {
  if (!schema || depth > 6) return schema;
  if (schema.$ref) return resolved(all[schema.$ref.split("/").pop()], all, depth + 1);
  const copy = Array.isArray(schema) ? [] : {};
  for (const [key, value] of Object.entries(schema)) {
    copy[key] = value && typeof value === "object" ? resolved(value, all, depth + 1) : value;
  }
  return copy;
}

function bodies(content, all) {
  return Object.entries(content || {}).flatMap(([type, body]) => [
    element("p", "", element("code", type)),
    element("pre", JSON.stringify(resolved(body.schema, all, 0), null, 2)),
  ]);
}

function operation(method, path, about, all) {
  const shown = element("details", "", element("summary", "", element("b", method.toUpperCase()), element("code", path), " " + (about.summary || "")));
  if (about.description) shown.append(element("p", about.description));
  if (about.parameters) {
    const table = element("table");
    for (const parameter of about.parameters) {
      const type = resolved(parameter.schema, all, 0);
      table.append(element("tr", "", element("th", "", element("code", parameter.name)), element("td", parameter.in), element("td", JSON.stringify(type && type.type)), element("td", parameter.description || "")));
    }
    shown.append(element("h3", "Parameters"), table);
  }
  if (about.requestBody) shown.append(element("h3", "Body"), ...bodies(about.requestBody.content, all));
  shown.append(element("h3", "Answers"));
  for (const [status, answer] of Object.entries(about.responses)) {
    shown.append(element("p", "", element("b", status), " " + (answer.description || "")));
    if (status < "3") shown.append(...bodies(answer.content, all));
  }
  return shown;
}

fetch("/api/openapi.json").then((answer) => answer.json()).then((document_) => {
  const all = document_.components.schemas;
  const found = [];
  for (const [path, item] of Object.entries(document_.paths)) {
    for (const [method, about] of Object.entries(item)) {
      if (about && about.responses) found.push(operation(method, path, about, all));
    }
  }
  document.getElementById("operations").replaceChildren(...found);
}).catch((error) => {
  document.getElementById("operations").textContent = "The document cannot be read: " + error;
});
