/*
 * GET /: a page to drop pictures on. It needs nothing else, keeps no secret (the token is typed in,
 * and lives as long as the page), and shows names only as text.
 */
#include "serve/server.h"

static const char page[] =
    "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width\"><title>tandem</title><style>"
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;"
    "margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}label.drop{display:block;"
    "border:2px dashed;border-radius:.5rem;padding:2.5rem 1rem;text-align:center;cursor:pointer}"
    "label.over{background:#8884}#token{width:min(24rem,100%);box-sizing:border-box}"
    "figure{display:flex;flex-wrap:wrap;gap:1rem;margin:1.5rem 0}"
    "figure div{flex:1 1 15rem;min-width:0}"
    "img{width:10rem;height:10rem;object-fit:contain;background:#8882}"
    "table{border-collapse:collapse;width:100%}td{padding:0 .8rem .1rem 0}"
    "td:first-child{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    "td:last-child{width:100%;padding-right:0}tr:first-child{font-size:1.25em;font-weight:bold}"
    "meter{width:5rem;vertical-align:middle}small{opacity:.7}</style>"
    "<h1>tandem</h1><p id=\"model\"></p>"
    "<p id=\"ask\" hidden><label>token <input id=\"token\" type=\"password\" autocomplete=\"off\">"
    "</label></p>"
    "<label class=\"drop\" id=\"drop\">drop images here, or click"
    "<input id=\"file\" type=\"file\" accept=\"image/*\" multiple hidden></label>"
    "<div id=\"out\"></div><script>\n"
    "'use strict';\n"
    "const at = id => document.getElementById(id);\n"
    "const add = (to, tag, text) => {\n"
    "  const made = to.appendChild(document.createElement(tag));\n"
    "  if (text !== undefined) made.textContent = text;\n"
    "  return made;\n"
    "};\n"
    "const heads = () => at('token').value ? {Authorization: 'Bearer ' + at('token').value} : {};\n"
    "async function about() {\n"
    "  const said = await fetch('model', {headers: heads()});\n"
    "  at('ask').hidden = at('ask').hidden && said.status !== 401;\n"
    "  const model = said.ok ? await said.json() : null;\n"
    "  at('model').textContent = model ? model.name + ', ' + model.classes.length + ' classes'\n"
    "    : 'a token is needed';\n"
    "}\n"
    "async function ask(file) {\n"
    "  const box = document.createElement('figure');\n"
    "  at('out').prepend(box);\n"
    "  const picture = add(box, 'img'), side = add(box, 'div');\n"
    "  picture.src = URL.createObjectURL(file);\n"
    "  picture.onload = picture.onerror = () => URL.revokeObjectURL(picture.src);\n"
    "  add(side, 'small', file.name);\n"
    "  const note = add(side, 'p', '…');\n"
    "  try {\n"
    "    const said = await fetch('predict', {method: 'POST', body: file,\n"
    "      headers: {...heads(), 'Content-Type': 'application/octet-stream'}});\n"
    "    const answer = await said.json();\n"
    "    if (!said.ok) { note.textContent = answer.error.message; return; }\n"
    "    note.remove();\n"
    "    const table = add(side, 'table');\n"
    "    for (const guess of answer.predictions[0].top) {\n"
    "      const row = add(table, 'tr');\n"
    "      add(row, 'td', (100 * guess.probability).toFixed(1) + ' %');\n"
    "      add(add(row, 'td'), 'meter').value = guess.probability;\n"
    "      add(row, 'td', guess.label);\n"
    "    }\n"
    "  } catch (problem) { note.textContent = String(problem); }\n"
    "}\n"
    "async function all(files) { for (const file of files) await ask(file); }\n"
    "at('file').onchange = () => all([...at('file').files]);\n"
    "at('token').onchange = about;\n"
    "const drop = at('drop');\n"
    "drop.ondragover = event => { event.preventDefault(); drop.classList.add('over'); };\n"
    "drop.ondragleave = () => drop.classList.remove('over');\n"
    "drop.ondrop = event => {\n"
    "  event.preventDefault();\n"
    "  drop.classList.remove('over');\n"
    "  all([...event.dataTransfer.files]);\n"
    "};\n"
    "about();\n"
    "</script></html>\n";

static void answer(struct tdmi_request *request)
{
    tdmi_request_header(request, "Content-Security-Policy",
                        "default-src 'none'; connect-src 'self'; img-src blob:; "
                        "script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; "
                        "form-action 'none'; frame-ancestors 'none'");
    tdmi_request_answer(request, 200, "text/html; charset=utf-8", page, sizeof page - 1);
}

const struct tdmi_route tdmi_route_page = {
    .path = "/", .method = "GET", .is_open = true, .answer = answer};
