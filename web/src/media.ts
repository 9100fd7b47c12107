import { useEffect, useState } from "preact/hooks";

/** Whether a media query matches, updated with the window. */
export function useMedia(query: string): boolean {
  const [holds, setHolds] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const follow = () => setHolds(list.matches);
    list.addEventListener("change", follow);
    return () => list.removeEventListener("change", follow);
  }, [query]);
  return holds;
}

let is_printing = false;
addEventListener("beforeprint", () => (is_printing = true));
addEventListener("afterprint", () => (is_printing = false));

/** Whether the page is being printed, already true in the first render for printing. */
export function usePrinting(): boolean {
  const [, repaint] = useState(is_printing);
  useEffect(() => {
    const follow = () => repaint(is_printing);
    addEventListener("beforeprint", follow);
    addEventListener("afterprint", follow);
    return () => {
      removeEventListener("beforeprint", follow);
      removeEventListener("afterprint", follow);
    };
  }, []);
  return is_printing;
}
