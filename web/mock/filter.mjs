/** A filter good enough for the mock: the grammar of the real one, without its speed. */

const COLUMNS = {
  rel_l2: "error",
  added: "added",
  inputs: "inputs",
  max_abs: "max_abs",
  n_nan: "n_nan",
  n_inf: "n_inf",
  headroom: "headroom",
};

/** `{ keep }`, or `{ error }` with the place of the token that is wrong. */
export function parseFilter(text) {
  const tests = [];
  for (const match of text.matchAll(/(?:"[^"]*"|\S)+/g)) {
    const whole = match[0];
    const negates = whole.startsWith("-") && whole.length > 1;
    const token = negates ? whole.slice(1) : whole;
    const test = parseToken(token.replace(/"/g, ""));
    if (typeof test !== "function") {
      return { error: { start: match.index, end: match.index + whole.length, ...test } };
    }
    tests.push(negates ? (row) => !test(row) : test);
  }
  return { keep: (row) => tests.every((test) => test(row)) };
}

function parseToken(token) {
  const compared = /^(\w+)(>=|<=|>|<|=)(.+)$/.exec(token);
  if (compared) return comparison(...compared.slice(1));
  const keyed = /^(\w+)([:~])(.*)$/.exec(token);
  if (!keyed) return (row) => row.op_name.toLowerCase().includes(token.toLowerCase());
  const [, key, sign, value] = keyed;
  const field = {
    name: "op_name",
    type: "op_type",
    status: "status",
    cause: "cause",
    step: "step",
    rank: "rank",
  }[key];
  if (key === "fault") return (row) => row.at_fault === (value === "yes");
  if (key === "nonfinite") return (row) => row.n_nan + row.n_inf > 0 === (value !== "none");
  if (!field) {
    return { message: `no column is named \`${key}\`.`, suggestion: `status:${value}` };
  }
  if (sign === "~") return (row) => row[field].toLowerCase().includes(value.toLowerCase());
  const pattern = new RegExp(
    `^${value
      .replace(/[.+^${}()|[\]\\]/g, "\\$&")
      .replace(/\*/g, ".*")
      .replace(/\?/g, ".")}$`,
  );
  return (row) => pattern.test(String(row[field]));
}

function comparison(key, sign, value) {
  const field = COLUMNS[key];
  if (!field)
    return { message: `no column is named \`${key}\`.`, suggestion: `rel_l2${sign}${value}` };
  const power = /^(\d+)\^(-?\d+)$/.exec(value);
  const number = power ? Number(power[1]) ** Number(power[2]) : Number(value);
  if (Number.isNaN(number)) return { message: `\`${value}\` is not a number.`, suggestion: null };
  const compare = {
    ">": (x) => x > number,
    ">=": (x) => x >= number,
    "<": (x) => x < number,
    "<=": (x) => x <= number,
    "=": (x) => x === number,
  }[sign];
  // Headroom is a power of two in rows and a factor in filters.
  const size = (row) => (key === "headroom" ? 2 ** row[field] : row[field]);
  return (row) => row[field] !== null && compare(size(row));
}
