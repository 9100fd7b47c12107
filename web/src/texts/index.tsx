/** The current language's texts, and inserting names into them. */

import type { ComponentChildren } from "preact";
import type { Language } from "../address";
import { en, type Texts } from "./en";
import { zh } from "./zh";

/** The page is rebuilt when the language changes, so components just read this. */
export let t: Texts = en;

export type SentenceKey = keyof Texts["sentence"];

export function setLanguage(language: Language): void {
  t = language === "zh" ? zh : en;
}

export function preferredLanguage(): Language {
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** `text` with each `{name}` replaced by a part, as text nodes and elements, never as markup. */
export function filled(
  text: string,
  parts: Record<string, ComponentChildren>,
): ComponentChildren[] {
  return text.split(/(\{\w+\})/).map((piece) => {
    const name = /^\{(\w+)\}$/.exec(piece)?.[1];
    return name !== undefined && name in parts ? parts[name] : piece;
  });
}

export function slotLabel(slot: string): string {
  const n = Number(slot.replace(/\D+/, ""));
  return slot.startsWith("in") ? t.input(n) : t.output(n);
}
