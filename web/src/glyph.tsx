/** Small pictures in `currentColor`: the status signs, the mark, and a few tools. */

import type { PicturedSide } from "./api";
import type { Status } from "./api";
import { t } from "./texts";

export type Sign = Status | "fault";

export function signOf(operator: { status: Status; at_fault?: boolean }): Sign {
  return operator.at_fault ? "fault" : operator.status;
}

export function Glyph({ sign, size = 14, label }: { sign: Sign; size?: number; label?: string }) {
  const words = label ?? (sign === "fault" ? t.at_fault : t.status[sign]);
  return (
    <svg
      class={`glyph g-${sign}`}
      width={size}
      height={size}
      viewBox="0 0 14 14"
      role="img"
      aria-label={words}
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      {SIGNS[sign]}
    </svg>
  );
}

const SIGNS: Record<Sign, preact.ComponentChild> = {
  fault: (
    <>
      <circle cx="7" cy="7" r="6.25" fill="currentColor" stroke="none" />
      <path class="g-inner" d="M5 5l4 4M9 5l-4 4" />
    </>
  ),
  fail: (
    <>
      <circle cx="7" cy="7" r="5.6" />
      <path d="M5.2 5.2l3.6 3.6M8.8 5.2L5.2 8.8" />
    </>
  ),
  warn: (
    <>
      <path d="M7 1.8l5.6 10.2H1.4z" />
      <path d="M7 5.4v3M7 10.2v.1" />
    </>
  ),
  pass: <path d="M2.8 7.4l2.8 2.8 5.6-6" />,
  skip: <path d="M1.8 7h2.6M6 7h2.4M10 7h2.4" />,
};

export function Disc({ sign }: { sign: Sign | "lost" }) {
  const inner: Record<Sign | "lost", string> = {
    fault: "M10 10l8 8M18 10l-8 8",
    fail: "M10 10l8 8M18 10l-8 8",
    warn: "M14 8.5v7M14 19.3v.2",
    lost: "M14 8.5v7M14 19.3v.2",
    pass: "M8.5 14.5l3.8 3.8 7.2-8",
    skip: "M9 14h10",
  };
  return (
    <svg
      class={`disc d-${sign}`}
      width="28"
      height="28"
      viewBox="0 0 28 28"
      aria-hidden="true"
      fill="none"
      stroke-width="2.4"
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      <circle cx="14" cy="14" r="14" fill="currentColor" />
      <path class="g-inner" d={inner[sign]} />
    </svg>
  );
}

export function Mark() {
  return (
    <svg
      class="mark"
      width="22"
      height="18"
      viewBox="0 0 22 18"
      aria-hidden="true"
      fill="none"
      stroke-width="2.4"
      stroke-linecap="round"
    >
      <path class="m-golden" d="M10 12.5c4 0 5.5 1.5 11 1.5" />
      <path class="m-target" d="M1 12.5h7c5 0 6-9.5 13-10" />
      <circle class="m-fault" cx="8.5" cy="12.5" r="3.4" />
    </svg>
  );
}

export function Swatch({ side }: { side: PicturedSide }) {
  return <span class={`swatch s-${side}`} aria-hidden="true" />;
}

export function Tool({ path }: { path: string }) {
  return (
    <svg
      width="18"
      height="18"
      viewBox="0 0 18 18"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      <path d={path} />
    </svg>
  );
}

export const SEARCH_PATH = "M8 13A5 5 0 1 0 8 3a5 5 0 0 0 0 10zM12 12l4 4";
export const MORE_PATH = "M4 9h.1M9 9h.1M14 9h.1";
