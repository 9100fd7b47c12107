/** A dialog that holds the focus until it closes, and then restores it. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface DialogProps {
  label: string;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ label, onClose, children }: DialogProps) {
  const box = useRef<HTMLDivElement>(null);
  // Keys typed right after a dialog opens belong to it.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const first = box.current?.querySelector<HTMLElement>("input,button");
    first?.focus();
    return () => before?.focus();
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      onClose();
    }
    if (event.key === "Tab") keepInside(event, box.current!);
  };
  return (
    <div
      class="backdrop"
      onMouseDown={(event) => event.target === event.currentTarget && onClose()}
    >
      <div
        class="dialog"
        role="dialog"
        aria-modal="true"
        aria-label={label}
        ref={box}
        onKeyDown={onKeyDown}
      >
        {children}
      </div>
    </div>
  );
}

function keepInside(event: KeyboardEvent, box: HTMLElement): void {
  const stops = box.querySelectorAll<HTMLElement>("input,button,[href]");
  const first = stops[0];
  const last = stops[stops.length - 1];
  const from = document.activeElement;
  if (event.shiftKey && from === first) {
    event.preventDefault();
    last?.focus();
  } else if (!event.shiftKey && from === last) {
    event.preventDefault();
    first?.focus();
  }
}
