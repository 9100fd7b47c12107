/** Virtual scrolling: the visible rows of a table of any length, and jumping to another. */

import { useCallback, useEffect, useLayoutEffect, useState } from "preact/hooks";
import { setTableScroller } from "./table-window";

/**
 * Browsers limit elements to about 17 million pixels; beyond this height, one pixel represents
 * several rows.
 */
const HEIGHT_MAX = 8_000_000;

export interface View {
  first: number;
  n_visible: number;
  width: number;
  height: number;
  topOf: (place: number) => number;
  reveal: (place: number, where: "middle" | "nearest") => void;
  row_height: number;
}

/** The visible rows, and a function that scrolls to another. */
export function useScroll(
  scrolls: () => HTMLElement | null,
  body: { current: HTMLElement | null },
  n: number,
  row_height: number,
  is_narrow: boolean,
): View {
  const [box, setBox] = useState({ top: 0, height: 600, width: 600, offset: 0 });
  const height = Math.min(HEIGHT_MAX, n * row_height);
  useLayoutEffect(() => {
    const element = scrolls();
    if (!element) return;
    const read = () => {
      const offset =
        is_narrow && body.current
          ? body.current.getBoundingClientRect().top -
            element.getBoundingClientRect().top +
            element.scrollTop
          : 28;
      setBox((b) => {
        const next = {
          top: element.scrollTop,
          height: element.clientHeight,
          width: body.current?.clientWidth ?? element.clientWidth,
          offset,
        };
        const is_same =
          b.top === next.top &&
          b.height === next.height &&
          b.width === next.width &&
          b.offset === next.offset;
        return is_same ? b : next;
      });
    };
    read();
    const observer = new ResizeObserver(read);
    observer.observe(element);
    element.addEventListener("scroll", read, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", read);
    };
  }, [is_narrow, n]);
  // If all rows exceed the maximum element height, scrolling covers more rows per pixel.
  const whole = n * row_height;
  const inner = Math.max(1, box.height - (is_narrow ? 0 : box.offset));
  const scale = whole > height ? (whole - inner) / Math.max(1, height - inner) : 1;
  const scrolled = Math.max(0, box.top - (is_narrow ? box.offset : 0));
  const first = Math.max(0, Math.min(n - 1, Math.floor((scrolled * scale) / row_height)));
  const shift = scrolled - scrolled * scale;
  const reveal = useCallback(
    (place: number, where: "middle" | "nearest") => {
      const element = scrolls();
      if (!element || n === 0) return;
      const base = is_narrow ? box.offset : 0;
      const now = Math.max(0, element.scrollTop - base) * scale;
      const top = place * row_height;
      const margin = where === "nearest" ? row_height : 0;
      if (where === "nearest" && top >= now && top + row_height <= now + inner) return;
      let to = top - inner / 2 + row_height / 2;
      if (where === "nearest" && Math.abs(top - now) < inner * 1.5) {
        to = top < now ? top - margin : top + row_height + margin - inner;
      }
      element.scrollTop = Math.max(0, to) / scale + base;
    },
    [n, scale, inner, is_narrow, box.offset],
  );
  useEffect(() => {
    setTableScroller((share) => reveal(Math.floor(share * n), "middle"));
    return () => setTableScroller(null);
  }, [reveal, n]);
  return {
    first,
    n_visible: Math.ceil(inner / row_height),
    width: box.width,
    height,
    row_height,
    reveal,
    topOf: (place) => Math.round(place * row_height + shift),
  };
}
