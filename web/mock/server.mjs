/**
 * Serves dist/ and made-up answers, for work on the page without a dump:
 * `npm run mock`, then http://127.0.0.1:4180/resnet/overview (or train, train60, hostile, agree,
 * unknown, big, huge, deep, empty). Stop it while the page is open to see the page without its
 * server.
 */

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { parseFilter } from "./filter.mjs";
import { graphOf } from "./graph.mjs";
import { sceneOf } from "./scenes.mjs";
import { stepsOf } from "./steps.mjs";
import { sliceOf, slotsOf, tensorOf, valuesOf } from "./tensors.mjs";

const DIST = join(fileURLToPath(new URL(".", import.meta.url)), "../dist");
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css" };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; " +
  "img-src 'self' data: blob:; connect-src 'self'";
const PORT = Number(process.env.PORT ?? 4180);
/** Where an `opscope view` runs, with its token: /live/overview shows it with this dist/. */
const LIVE = process.env.OPSCOPE;
const DELAY_MS = Number(process.env.DELAY_MS ?? 0);

createServer(async (request, response) => {
  const url = new URL(request.url, "http://mock");
  const [, token, first, ...rest] = url.pathname.split("/");
  if (first === "api" && token === "live" && LIVE) {
    return passOn(response, `${LIVE}/api/${rest.join("/")}${url.search}`);
  }
  if (first === "api") {
    await new Promise((resolve) => setTimeout(resolve, DELAY_MS));
    return answer(response, token, rest, url.searchParams);
  }
  const file = first === "assets" ? normalize(`assets/${rest.join("/")}`) : "index.html";
  try {
    const body = await readFile(join(DIST, file));
    response.writeHead(200, {
      "content-type": TYPES[extname(file)] ?? "application/octet-stream",
      "content-security-policy": POLICY,
    });
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
}).listen(PORT, "127.0.0.1", () => console.error(`http://127.0.0.1:${PORT}/resnet/overview`));

function answer(response, token, [what, id], query) {
  const scene = sceneOf(decodeURIComponent(token));
  const row = scene.rows[Number(id ?? query.get("op"))];
  const needs_row = ["operator", "tensor", "slice", "values", "npy"].includes(what);
  if (needs_row && !row) return send(response, 404, { error: "there is no such operator" });
  switch (what) {
    case "info":
      return send(response, 200, scene.info);
    case "operators":
      return send(response, 200, operators(scene, query));
    case "trace":
      return send(response, 200, traceOf(scene, query));
    case "operator":
      return send(response, 200, operatorOf(scene, row));
    case "tensor":
      return send(response, 200, tensorOf(scene, row, query.get("slot")));
    case "values":
      return send(response, 200, valuesOf(scene, row, query));
    case "graph":
      return send(response, 200, graphOf(scene, query));
    case "steps":
      return send(response, 200, stepsOf(scene, query));
    case "scalars":
      return send(response, 200, { total: 0, choices: [], chosen: null, columns: [], target: null, golden: null });
    case "events":
      return send(response, 200, { total: 0, n_unlisted: 0, events: [], problems: [] });
    case "coverage":
      return send(response, 200, coverage(scene));
    case "slice":
      response.writeHead(200, { "content-type": "application/octet-stream" });
      return response.end(sliceOf(scene, row, query));
    default:
      return send(response, 404, { error: `no such question: ${what}` });
  }
}

async function passOn(response, address) {
  const answer = await fetch(address).catch(() => null);
  if (!answer) return send(response, 502, { error: "opscope does not answer" });
  response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") });
  response.end(Buffer.from(await answer.arrayBuffer()));
}

function send(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

const SORTS = {
  order: (r) => r.id,
  error: (r) => r.error ?? -1,
  added: (r) => r.added ?? -1,
  max_abs: (r) => r.max_abs ?? -1,
  n_nan: (r) => r.n_nan,
  n_inf: (r) => r.n_inf,
  headroom: (r) => r.headroom ?? 999,
  name: (r) => r.op_name,
  type: (r) => r.op_type,
  guilt: (r) => -(r.at_fault ? 1e9 : 0) - (r.error ?? 0),
};

function operators(scene, query) {
  const filter = parseFilter(query.get("q") ?? "");
  const total = scene.rows.length;
  if (filter.error) return { total, matching: 0, find: null, rows: [], error: filter.error };
  const sort = query.get("sort") ?? "order";
  const key = SORTS[sort.replace(/^-/, "")] ?? SORTS.order;
  const sign = sort.startsWith("-") ? -1 : 1;
  const rows = scene.rows.filter(filter.keep);
  if (sort !== "order") {
    rows.sort((a, b) => (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : a.id - b.id));
  }
  const find = query.has("find") ? rows.findIndex((r) => r.id === Number(query.get("find"))) : -1;
  const offset = Number(query.get("offset") ?? 0);
  return {
    total,
    matching: rows.length,
    find: find < 0 ? null : find,
    error: null,
    rows: rows.slice(offset, offset + Number(query.get("limit") ?? 200)),
  };
}

function traceOf(scene, query) {
  const filter = parseFilter(query.get("q") ?? "");
  const rows = filter.error ? [] : scene.rows.filter(filter.keep);
  const k = Math.min(rows.length, Number(query.get("columns")));
  const trace = {
    n: rows.length,
    columns: k,
    value: [],
    added: scene.info.golden ? [] : null,
    status: "",
    nan: "",
    first: [],
    faults: [],
    limit: scene.limit,
    labels: [],
  };
  let label = null;
  for (let i = 0; i < k; i += 1) {
    const part = rows.slice(
      Math.floor((i * rows.length) / k),
      Math.floor(((i + 1) * rows.length) / k),
    );
    const size = (r) => (scene.info.golden ? r.error : r.max_abs) ?? -1;
    const worst = part.reduce((a, b) => (size(b) > size(a) ? b : a));
    trace.value.push(scene.info.golden ? worst.error : worst.max_abs);
    trace.added?.push(worst.added);
    trace.status += worst.status[0];
    trace.nan += part.some((r) => r.n_nan + r.n_inf > 0) ? "1" : "0";
    trace.first.push(worst.id);
    for (const r of part) if (r.at_fault) trace.faults.push([i, r.id]);
    const parts = part[0].op_name.split(part[0].op_name.includes("/") ? "/" : ".").filter(Boolean);
    const module = parts[0] === "blocks" ? parts.slice(0, 2).join(".") : (parts[0] ?? "");
    if (module !== label && rows.length < 1000) trace.labels.push({ at: i, text: module });
    label = module;
  }
  return trace;
}

function operatorOf(scene, row) {
  const { id } = row;
  const is_pair = scene.info.golden !== null;
  return {
    ...row,
    module: null,
    source: [
      { text: "model.py:41 in forward", is_user: true },
      { text: "torch/nn/modules/conv.py:460 in forward", is_user: false },
    ],
    target: [{ op_type: row.op_type, op_name: row.op_name }],
    golden: is_pair ? [{ op_type: row.op_type, op_name: row.op_name }] : [],
    slots: slotsOf(scene, row),
    attributes:
      row.op_type === "Conv"
        ? [{ name: "strides", target: "[1, 1]", golden: is_pair ? "[1, 1]" : null }]
        : [],
    how: is_pair ? "same name and type" : "",
    producers: id > 0 ? [{ slot: "in0", id: id - 1 }] : [],
    consumers: id + 1 < scene.rows.length ? [{ slot: "in0", id: id + 1 }] : [],
    events: [],
    chain: is_pair || scene.info.verdict.op === null ? [] : chainOf(scene),
    suspects: [],
  };
}

function chainOf(scene) {
  const from = scene.info.verdict.op;
  const { step } = scene.rows[from];
  const chain = scene.rows.slice(Math.max(0, from - 1)).filter((r) => r.step === step);
  return chain.map((r) => ({
    id: r.id,
    op_type: r.op_type,
    op_name: r.op_name,
    role:
      r.id < from
        ? "before"
        : r.id === from
          ? "makes"
          : r.note === "inf_to_nan"
            ? "changes"
            : "hands_on",
    n_nan: r.n_nan,
    n_inf: r.n_inf,
    n_elements: r.shape.reduce((a, b) => a * b, 1),
    max_abs: r.max_abs,
  }));
}

function coverage(scene) {
  const n = scene.rows.length * 4;
  return {
    stages: [
      { stage: "seen", n },
      { stage: "dumped", n: n - 8 },
      { stage: "paired", n: n - 14 },
      { stage: "compared", n: n - 20 },
    ],
    groups: [
      {
        reason: "missing",
        words: "the golden side has no such operator",
        side: "target",
        n: 6,
        examples: [
          {
            op_type: "Reshape",
            op_name: "/gemm_input_reshape",
            slot: null,
            message: "no partner by name, type or graph",
          },
        ],
      },
      {
        reason: "damaged",
        words: "the file is damaged",
        side: "golden",
        n: 2,
        examples: [
          {
            op_type: "Conv",
            op_name: "/conv1/Conv",
            slot: "out0",
            message: "file ends at byte 4,096 of 884,736",
          },
        ],
      },
    ],
    problems: [
      { side: "golden", message: "step_0/rank_0/0.out0.npy: file ends at byte 4,096 of 884,736" },
    ],
    passed_over: [{ side: "target", path: "notes.txt", reason: "not a file of a dump" }],
  };
}
