/** Made-up runs. The token in the address names one: /resnet/overview, /train60/…, /hostile/…. */

import { seeded } from "./noise.mjs";

const VIEWS = ["overview", "graph", "tensor", "steps", "coverage"];

function side(name, n, form = "native") {
  return { name, path: `/data/runs/${name}`, form, n_operators: n, n_slots: n * 4 - 28 };
}

function row(id, op_type, op_name, rest = {}) {
  return {
    id,
    op_type,
    op_name,
    rank: 0,
    step: 0,
    call: 0,
    status: "pass",
    at_fault: false,
    cause: null,
    error: 0,
    added: 0,
    inputs: 0,
    entry: null,
    golden: null,
    n_target: 1,
    n_golden: 1,
    max_abs: 1.5,
    headroom: 127,
    n_nan: 0,
    n_inf: 0,
    note: null,
    dtype: "float32",
    shape: [2, 64, 24, 24],
    ...rest,
  };
}

function resnetNames() {
  const names = [
    ["Conv", "/conv1/Conv", ""],
    ["BatchNormalization", "/bn1/BatchNormalization", ""],
    ["Relu", "/relu/Relu", ""],
    ["MaxPool", "/maxpool/MaxPool", ""],
  ];
  for (let layer = 1; layer <= 4; layer += 1) {
    for (let block = 0; block < 2; block += 1) {
      const at = `/layer${layer}/layer${layer}.${block}`;
      for (const [type, part] of [
        ["Conv", "conv1"],
        ["BatchNormalization", "bn1"],
        ["Relu", "relu"],
        ["Conv", "conv2"],
        ["BatchNormalization", "bn2"],
      ]) {
        names.push([type, `${at}/${part}/${type}`]);
      }
      if (layer > 1 && block === 0) {
        names.push(["Conv", `${at}/downsample/downsample.0/Conv`]);
        names.push(["BatchNormalization", `${at}/downsample/downsample.1/BatchNormalization`]);
      }
      names.push(["Add", `${at}/Add`], ["Relu", `${at}/relu_1/Relu`]);
    }
  }
  names.push(
    ["GlobalAveragePool", "/avgpool/GlobalAveragePool"],
    ["Flatten", "/Flatten"],
    ["Gemm", "/fc/Gemm"],
  );
  return names.slice(0, 69);
}

function resnet() {
  const random = seeded(7);
  const shapes = { 1: [2, 64, 24, 24], 2: [2, 128, 12, 12], 3: [2, 256, 6, 6], 4: [2, 512, 3, 3] };
  const rows = resnetNames().map(([type, name], id) => {
    const layer = Number(/layer(\d)/.exec(name)?.[1] ?? (id < 4 ? 1 : 4));
    const shape = type === "Gemm" ? [2, 1000] : shapes[layer];
    const max_abs = 0.8 + random() * 3;
    if (id < 27) return row(id, type, name, { shape, max_abs });
    if (id === 27) {
      return row(id, type, name, {
        shape,
        max_abs,
        status: "fail",
        at_fault: true,
        cause: "outside",
        entry: "weight",
        error: 0.08498,
        added: 0.05214,
      });
    }
    const decay = id === 28 ? 0.05774 : 0.0078 * Math.exp(-(id - 28) / 7) + 2.4e-4;
    const error = decay * (0.86 + random() * 0.28);
    const added = random() > 0.8 ? error * (0.2 + random() * 0.4) : 0;
    return row(id, type, name, {
      shape,
      max_abs,
      error,
      added,
      inputs: error * 1.1,
      status: error > 1e-3 ? "fail" : "warn",
      cause: "inherited",
    });
  });
  const info = {
    program: "opscope 0.1.0 (mock)",
    target: side("d_resnet18_bad", 69),
    golden: side("d_resnet18", 69),
    metric: { name: "rel_l2", limit: 0.001 },
    verdict: {
      status: "fail",
      kind: "weight",
      op: 27,
      op_type: "Conv",
      op_name: rows[27].op_name,
      slot: "in1",
      parameter: "layer2.1.conv1.weight",
      rank: null,
      step: null,
      n_bad: null,
      n_elements: null,
      dtype: "float32",
      metric: { name: "rel_l2", value: 0.0671, limit: 0.001 },
      box: {
        n_differing: 1152,
        n_elements: 147456,
        region: "[37, :, :, :]",
        ranges: [
          [37, 37],
          [0, 127],
          [0, 2],
          [0, 2],
        ],
      },
      n_after: 41,
      text: "The runs diverge at Conv layer2.1/conv1: its weight differs.",
    },
  };
  return scene(info, rows);
}

/** Nothing above rounding; no operator is named. */
function agree() {
  const random = seeded(3);
  const rows = resnetNames().map(([type, name], id) =>
    row(id, type, name, { error: random() * 3e-7 * (1 + id / 20) }),
  );
  const info = {
    program: "opscope 0.1.0 (mock)",
    target: side("d_resnet18_b", 69),
    golden: side("d_resnet18", 69),
    metric: { name: "rel_l2", limit: 0.001 },
    verdict: verdict("pass", "agree"),
  };
  return scene(info, rows);
}

function unknown() {
  const base = agree();
  base.rows.forEach((r, id) => {
    if (id >= 3 && id < 9)
      Object.assign(r, { status: "skip", error: null, added: null, cause: null });
    if (id >= 9) Object.assign(r, { status: "fail", error: 0.02, cause: "unknown" });
  });
  base.info.verdict = { ...verdict("fail", "unknown"), n_after: 60 };
  return scene(base.info, base.rows);
}

function verdict(status, kind) {
  return {
    status,
    kind,
    op: null,
    op_type: "",
    op_name: "",
    slot: null,
    parameter: null,
    rank: null,
    step: null,
    n_bad: null,
    n_elements: null,
    dtype: null,
    metric: null,
    box: null,
    n_after: 0,
    text: "",
  };
}

function trainingNames() {
  const names = [["Embedding", "embed"]];
  for (let b = 0; b < 4; b += 1) {
    names.push(
      ["LayerNorm", `blocks.${b}.ln1`],
      ["Linear", `blocks.${b}.attn.q`],
      ["Linear", `blocks.${b}.attn.k`],
      ["Linear", `blocks.${b}.attn.v`],
      ["Linear", `blocks.${b}.attn.out`],
      ["LayerNorm", `blocks.${b}.ln2`],
      ["Linear", `blocks.${b}.mlp.fc1`],
      ["Linear", `blocks.${b}.mlp.fc2`],
    );
  }
  names.push(["LayerNorm", "norm"], ["Linear", "head"]);
  return names;
}

function training() {
  const names = trainingNames();
  const sizes = [4.445, 106.6, 924, 5072, 4964];
  const rows = names.map(([type, name], id) => {
    const shape = name.endsWith("fc1") ? [4, 64, 256] : [4, 64, 64];
    const n = shape.reduce((a, b) => a * b, 1);
    const base = { step: 42, dtype: "float16", shape, error: null, added: null, inputs: null };
    if (id < 5) {
      const headroom = Math.floor(Math.log2(65504 / sizes[id]));
      return row(id, type, name, {
        ...base,
        max_abs: sizes[id],
        headroom,
        status: headroom < 4 ? "warn" : "pass",
        note: headroom < 4 ? "near_edge" : null,
      });
    }
    if (id === 5) {
      return row(id, type, name, {
        ...base,
        max_abs: 65056,
        headroom: -1,
        n_inf: 10786,
        status: "fail",
        at_fault: true,
        note: "makes_inf",
      });
    }
    return row(id, type, name, {
      ...base,
      max_abs: null,
      headroom: null,
      n_nan: n,
      status: "fail",
      note: id === 6 ? "inf_to_nan" : "hands_on",
    });
  });
  const info = {
    program: "opscope 0.1.0 (mock)",
    target: side("train_fp16", rows.length),
    golden: null,
    metric: { name: "max_abs", limit: null },
    verdict: {
      ...verdict("fail", "overflows"),
      op: 5,
      op_type: "Linear",
      op_name: "blocks.0.attn.out",
      slot: "out0",
      step: 42,
      n_bad: 10786,
      n_elements: 16384,
      dtype: "float16",
      n_after: rows.length - 6,
    },
  };
  return scene(info, rows, 65504);
}

/** Sixty steps of a training run in float16: one operator grows, overflows, and all is NaN. */
function training60() {
  const random = seeded(5);
  const names = trainingNames();
  const [n, n_steps, bad_step, bad] = [names.length, 60, 42, 5];
  const rows = [];
  for (let step = 0; step < n_steps; step += 1) {
    names.forEach(([type, name], i) => {
      const id = step * n + i;
      const shape = name.endsWith("fc1") ? [8, 32, 256] : [8, 32, 64];
      const base = { step, dtype: "float16", shape, error: null, added: null, inputs: null };
      const n_elements = shape.reduce((a, b) => a * b, 1);
      if (step > bad_step || (step === bad_step && i > bad)) {
        const note = step === bad_step && i === bad + 1 ? "inf_to_nan" : "hands_on";
        const nan = { max_abs: null, headroom: null, n_nan: n_elements, status: "fail", note };
        rows.push(row(id, type, name, { ...base, ...nan }));
        return;
      }
      const is_out = name.endsWith("attn.out") || name.endsWith("fc2");
      const speed = i === bad ? 1.7 : is_out ? 0.5 + random() * 0.3 : 0.15 + random() * 0.1;
      const calm = 0.3 + (i % 7) * 0.8 + random() * 0.1;
      const late = Math.max(0, step - 34);
      let max_abs = calm * (1 + 0.004 * step) * Math.exp(late * speed * (late > 5 ? 1 : 0.4));
      const is_fault = step === bad_step && i === bad;
      max_abs = is_fault ? 65504 : Math.min(max_abs, 60000);
      const headroom = Math.floor(Math.log2(65504 / max_abs));
      const fault = { n_inf: 10786, status: "fail", at_fault: true, note: "makes_inf" };
      const edge = { status: "warn", note: "near_edge" };
      rows.push(
        row(id, type, name, {
          ...base,
          max_abs,
          headroom,
          ...(is_fault ? fault : headroom < 4 ? edge : {}),
        }),
      );
    });
  }
  const op = bad_step * n + bad;
  const info = {
    program: "opscope 0.1.0 (mock)",
    target: side("train_fp16", rows.length),
    golden: null,
    metric: { name: "max_abs", limit: null },
    verdict: {
      ...verdict("fail", "overflows"),
      op,
      op_type: "Linear",
      op_name: "blocks.0.attn.out",
      slot: "out0",
      step: bad_step,
      n_bad: 10786,
      n_elements: 16384,
      dtype: "float16",
      n_after: rows.length - op - 1,
    },
  };
  return scene(info, rows, 65504);
}

function hostile() {
  const base = resnet();
  const names = [
    "<img src=x onerror=alert(1)>",
    "\u202eevil/gpj.exe",
    "a\u001b[31mred\u0000\u0007b",
    "很长的中文名称/第二层/注意力/输出投影",
    "/שלום/עולם/conv",
    "x".repeat(300),
    "",
    "///",
    "/a/b/Conv",
    "/a/b/Conv",
    "{op}",
    "model/decoder/layers/31/self_attn/q_proj/MatMul",
    "\u200f\u2066rtl\u2069",
    "gemm_output_reshape_token_5_of_a_very_long_fused_operator_name_in_ort",
  ];
  names.forEach((name, i) => {
    base.rows[18 + i].op_name = name;
  });
  base.info.verdict.op_name = base.rows[27].op_name;
  base.info.target.name = "\u202egpj.<b>exe</b>\u0007";
  return scene(base.info, base.rows);
}

/** A hundred thousand rows of 8 steps on 4 ranks, or more than an element may be tall. */
function big(n = 100000) {
  const base = resnetNames();
  const random = seeded(11);
  const fault = 61234;
  const rows = Array.from({ length: n }, (_, id) => {
    const [type, name] = base[id % 69];
    const step = Math.floor(id / 12500);
    const rank = Math.floor((id % 12500) / 3125);
    const error = id < fault ? random() * 2e-7 : 1e-3 * (0.3 + random() * 3);
    return row(id, type, name, {
      step,
      rank,
      error,
      status: error > 1e-3 ? "fail" : error > 5e-4 ? "warn" : "pass",
      cause: error > 5e-4 ? "inherited" : null,
    });
  });
  Object.assign(rows[fault], {
    status: "fail",
    at_fault: true,
    cause: "own",
    error: 0.4,
    added: 0.4,
  });
  const info = {
    program: "opscope 0.1.0 (mock)",
    target: side("big", n),
    golden: side("big_golden", n),
    metric: { name: "rel_l2", limit: 0.001 },
    verdict: {
      ...verdict("fail", "own"),
      op: fault,
      op_type: rows[fault].op_type,
      op_name: rows[fault].op_name,
      slot: "out0",
      step: rows[fault].step,
      rank: rows[fault].rank,
      metric: { name: "rel_l2", value: 0.4, limit: 0.001 },
      n_after: n - fault - 1,
    },
  };
  return scene(info, rows);
}

/** More operators than a picture has rows, over a hundred steps; in step 61 the runs part. */
function deep(n = 3000, n_steps = 100) {
  const random = seeded(13);
  const rows = [];
  for (let step = 0; step < n_steps; step += 1) {
    for (let i = 0; i < n; i += 1) {
      const is_fault = step === 61 && i === 1234;
      const is_after = step > 61 || (step === 61 && i > 1234);
      const error = is_fault ? 0.2 : is_after ? 2e-3 * (1 + random()) : 1e-7 * random();
      const status = error > 1e-3 ? "fail" : "pass";
      const cause = is_fault ? "own" : is_after ? "inherited" : null;
      const name = `model.layers.${Math.floor(i / 30)}.part${Math.floor((i % 30) / 5)}.op${i % 5}`;
      const rest = { step, error, status, cause, at_fault: is_fault };
      rows.push(row(step * n + i, "MatMul", name, rest));
    }
  }
  const fault = rows.find((r) => r.at_fault);
  const info = {
    program: "opscope 0.1.0 (mock)",
    target: side("deep", rows.length),
    golden: side("deep_golden", rows.length),
    metric: { name: "rel_l2", limit: 0.001 },
    verdict: {
      ...verdict("fail", "own"),
      op: fault.id,
      op_type: fault.op_type,
      op_name: fault.op_name,
      slot: "out0",
      step: 61,
      metric: { name: "rel_l2", value: 0.2, limit: 0.001 },
      n_after: rows.length - fault.id - 1,
    },
  };
  return scene(info, rows);
}

function empty() {
  return scene(
    {
      program: "opscope 0.1.0 (mock)",
      target: side("nothing", 0),
      golden: side("nothing_golden", 0),
      metric: { name: "rel_l2", limit: 0.001 },
      verdict: verdict("skip", "nothing"),
    },
    [],
  );
}

function scene(info, rows, limit = 0.001) {
  const count = (status) => rows.filter((r) => r.status === status).length;
  const first = rows.find((r) => r.n_nan > 0 || r.n_inf > 0);
  const is_pair = info.golden !== null;
  const places = placesOf(rows);
  const has_steps = places.some((p) => p.step !== places[0].step);
  return {
    limit,
    rows,
    info: {
      ...info,
      n_operators: rows.length,
      views: has_steps ? VIEWS : VIEWS.filter((view) => view !== "steps"),
      places,
      counts: {
        pass: count("pass"),
        warn: count("warn"),
        fail: count("fail"),
        skip: count("skip"),
      },
      slots: is_pair
        ? { compared: Math.max(0, rows.length * 4 - 28), total: Math.max(0, rows.length * 4 - 28) }
        : null,
      first_non_finite: first ? first.id : null,
      near_edge: rows.filter((r) => r.note === "near_edge").length,
      n_problems: 0,
    },
  };
}

/** Rows of one rank and step follow each other. */
function placesOf(rows) {
  const places = [];
  for (const { id, rank, step } of rows) {
    const last = places[places.length - 1];
    if (last?.rank === rank && last.step === step) last.n += 1;
    else places.push({ rank, model: null, step, first: id, n: 1 });
  }
  return places;
}

const makers = {
  resnet,
  train: training,
  train60: training60,
  hostile,
  agree,
  unknown,
  big: () => big(),
  huge: () => big(1000000),
  deep: () => deep(),
  empty,
};
const made = new Map();

export function sceneOf(token) {
  const name = token in makers ? token : "resnet";
  if (!made.has(name)) made.set(name, makers[name]());
  return made.get(name);
}
