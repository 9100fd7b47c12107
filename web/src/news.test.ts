import { beforeEach, describe, expect, it, vi } from "vitest";

const forgetAnswers = vi.fn();
vi.mock("./connection", () => ({ base: "/token/", forgetAnswers, lookAgain: () => undefined }));

/** A connection whose messages the test sends. */
let source: { onmessage: (event: { data: string }) => void };
vi.stubGlobal(
  "EventSource",
  class {
    constructor() {
      source = this as unknown as typeof source;
    }
  },
);

function send(generation: number): void {
  source.onmessage({ data: JSON.stringify({ generation, state: "running" }) });
}

beforeEach(async () => {
  vi.resetModules();
  forgetAnswers.mockClear();
  (await import("./news")).listen();
});

describe("news", () => {
  it("of the dump as it was opened change nothing", () => {
    send(0);
    expect(forgetAnswers).not.toHaveBeenCalled();
  });

  it("make answers old that were given before the first of them", () => {
    send(3);
    expect(forgetAnswers).toHaveBeenCalledTimes(1);
  });

  it("make answers old once for each state of the dump", () => {
    for (const generation of [0, 1, 1, 2, 2]) send(generation);
    expect(forgetAnswers).toHaveBeenCalledTimes(2);
  });
});
