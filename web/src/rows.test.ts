import { describe, expect, it, vi } from "vitest";

/** Answers that arrive when the test releases them. */
const waiting: { path: string; resolve: (answer: unknown) => void }[] = [];

vi.mock("./connection", () => ({
  ask: (path: string) => new Promise((resolve) => waiting.push({ path, resolve })),
  generation: 0,
  recoveries: 0,
}));

vi.mock("./address", () => ({ scopedFilter: () => "" }));

const { RowSource } = await import("./rows");

function answerOf(total: number) {
  return { total, matching: total, find: null, rows: [], error: null };
}

async function settle(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
}

describe("rows of a dump that grows", () => {
  it("are those of the newest answer, whatever arrives last", async () => {
    const source = new RowSource("", "order");
    source.renew();
    source.renew();
    const [first, second, third] = waiting.splice(0);
    first.resolve(answerOf(1));
    third.resolve(answerOf(3));
    await settle();
    second.resolve(answerOf(2));
    await settle();
    expect(source.total).toBe(3);
    // Present rows are not requested again.
    source.row(0);
    await settle();
    expect(waiting).toEqual([]);
  });

  it("are shown though newer ones are on their way", async () => {
    const source = new RowSource("", "order");
    source.renew();
    waiting.splice(0)[0].resolve(answerOf(4));
    await settle();
    expect(source.total).toBe(4);
    // The newest rows are requested anyway.
    source.row(0);
    expect(waiting.splice(0).length).toBeGreaterThan(0);
  });

  it("stay until newer ones are here", async () => {
    const source = new RowSource("", "order");
    waiting.splice(0)[0].resolve(answerOf(5));
    await settle();
    source.renew();
    expect(source.total).toBe(5);
    waiting.splice(0)[0].resolve(answerOf(7));
    await settle();
    expect(source.total).toBe(7);
  });
});
