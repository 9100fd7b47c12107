import { expect, test } from "vitest";
import { cutLetters, distinctNames, fitName, setCommonPrefix, shortName, visible } from "./names";

const read = (name: string, type: string) => {
  const { path, last } = shortName(name, type);
  return `${path}|${last}`;
};

test.each([
  ["/layer2/layer2.1/conv1/Conv", "Conv", "layer2.1/|conv1"],
  ["/layer2/layer2.1/Add", "Add", "|layer2.1"],
  [
    "/layer3/layer3.0/downsample/downsample.1/BatchNormalization",
    "BatchNormalization",
    "layer3.0/|downsample.1",
  ],
  ["/Conv", "Conv", "|Conv"],
  ["blocks.0.attn.out", "Linear", "blocks.0.attn.|out"],
  ["/blocks.2/attn/v/MatMul", "Gemm", "blocks.2/attn/v/|MatMul"],
  ["", "Add", '|""'],
  ["///", "Add", "|///"],
  ["a\u001b[2J\u200f", "Add", "|a␛[2J⟨RLM⟩"],
])("%j of type %s is shown as %s", (name, type, shown) => {
  expect(read(name, type)).toBe(shown);
});

test("names that would read alike keep the parts that tell them apart", () => {
  const shown = distinctNames([
    { op_name: "/layer2/layer2.1/conv1/Conv", op_type: "Conv" },
    { op_name: "/other/layer2/layer2.1/conv1/Conv", op_type: "Conv" },
    { op_name: "/layer2.1/conv1/Conv", op_type: "Conv" },
    { op_name: "/layer2.1/conv1", op_type: "Conv" },
    { op_name: "/norm/Relu", op_type: "Relu" },
  ]).map(({ path, last }) => path + last);
  expect(shown).toEqual([
    "layer2/layer2.1/conv1",
    "other/layer2.1/conv1",
    "layer2.1/conv1/Conv",
    "layer2.1/conv1",
    "norm",
  ]);
});

const letters = (text: string) => text.length;

test.each([
  ["model/layers/3/self_attn/q_proj", "MatMul", 50, "model/layers/3/self_attn/q_proj MatMul"],
  [
    "model/layers/3/self_attn/q_proj",
    "MatMulAddFusion",
    41,
    "model/layers/3/self_attn/q_proj Mat…",
  ],
  ["model/layers/3/self_attn/q_proj", "MatMul", 30, "model/…/q_proj Mat…"],
  ["model/layers/3/self_attn/q_proj", "", 24, "model/…/self_attn/q_proj"],
  ["gemm_output_reshape_token_5", "Gemm", 17, "gemm_out…_token_5"],
  ["gemm_output_reshape_token_5", "Gemm", 3, "gemm_out…_token_5"],
])("%s %s in %i letters", (name, type, width, shown) => {
  const fitted = fitName(shortName(name, type), type, width, letters);
  expect(`${fitted.path}${fitted.last} ${fitted.type}`.trim()).toBe(shown);
});

test("what cannot be seen is made visible", () => {
  expect(visible("\u0000\u007f\u0085\u202e\u2066ok\ufeff")).toBe("␀␡⟨U+0085⟩⟨RLO⟩⟨LRI⟩ok⟨BOM⟩");
});

test("names tell operators apart where no type stands beside them", () => {
  const operators = ["Sub", "Mul"].map((op_type) => ({ op_type, op_name: `/block2/${op_type}` }));
  const shown = (has_types: boolean) =>
    distinctNames(operators, has_types).map(({ path, last }) => path + last);
  expect(shown(true)).toEqual(["block2", "block2"]);
  expect(shown(false)).toEqual(["block2/Sub", "block2/Mul"]);
});

test("a prefix that nearly all names share is left out, unless names would read alike", () => {
  setCommonPrefix("node_");
  const shown = distinctNames(
    ["node_Conv_46", "node_relu", "relu", "n0"].map((op_name) => ({ op_name, op_type: "Op" })),
  ).map(({ path, last }) => path + last);
  setCommonPrefix("");
  expect(shown).toEqual(["Conv_46", "node_relu", "relu", "n0"]);
});

test("a long caption loses its middle", () => {
  expect(cutLetters("digits_cnn", 10)).toBe("digits_cnn");
  expect(cutLetters("digits_cnn_transposed", 10)).toBe("digit…osed");
});
