/**
 * Keyboard shortcuts. They are inactive in inputs, with the system's modifiers, and under a dialog.
 */

import { useLayoutEffect, useRef } from "preact/hooks";

/** Returns whether it handled the key; the handler mounted last is asked first. */
export type KeyHandler = (key: string, event: KeyboardEvent) => boolean;

const handlers: { current: KeyHandler }[] = [];

export function useKeys(handler: KeyHandler): void {
  const latest = useRef(handler);
  latest.current = handler;
  // Before the next paint, so that the keys work as soon as the view is visible.
  useLayoutEffect(() => {
    handlers.push(latest);
    return () => void handlers.splice(handlers.indexOf(latest), 1);
  }, []);
}

export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable;
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || isTyping(event)) return;
  if (event.metaKey || event.altKey || event.ctrlKey) return;
  if (document.querySelector("[role=dialog]")) return;
  const target = event.target as HTMLElement;
  // A focused button or link keeps the keys that activate it, and tabs keep their arrows.
  const presses = event.key === "Enter" || event.key === " ";
  if (presses && /^(BUTTON|A|SUMMARY)$/.test(target.tagName)) return;
  for (let i = handlers.length - 1; i >= 0; i -= 1) {
    if (handlers[i].current(event.key, event)) {
      event.preventDefault();
      return;
    }
  }
});
