/** Colours for canvases: the tokens of the style sheet, and the two scales. */

export type Token =
  | "bg"
  | "surface"
  | "sunken"
  | "line"
  | "line2"
  | "edge"
  | "text"
  | "text2"
  | "text3"
  | "accent"
  | "accentbg"
  | "fail"
  | "failbg"
  | "failpale"
  | "onfail"
  | "warn"
  | "warnmark"
  | "warnbg"
  | "warnpale"
  | "pass"
  | "passmark"
  | "skip"
  | "gold"
  | "goldmark"
  | "goldfill"
  | "size";

export type Rgb = [number, number, number];

export interface Colours {
  of: (token: Token) => string;
  sequential: Rgb[];
  diverging: Rgb[];
}

const SCALES = {
  light: {
    sequential: ["#EEF2F8", "#BFD0EC", "#7FA3DB", "#3F6FBE", "#1B3F8A", "#0A1B4A"],
    diverging: ["#0B4F9E", "#6FA3DA", "#C9DCF0", "#F6F6F4", "#F6D3AE", "#E0914A", "#9C3D00"],
  },
  dark: {
    sequential: ["#1A2130", "#1F3A6B", "#2F62AE", "#5D96DE", "#A3CBF6", "#EEF6FF"],
    diverging: ["#8CC2FF", "#3F7FC8", "#23456F", "#1B2029", "#6B4219", "#C47A2E", "#FFBE7A"],
  },
};

let cached: { theme: string; colours: Colours } | null = null;

export function currentColours(): Colours {
  const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
  if (cached?.theme === theme) return cached.colours;
  const style = getComputedStyle(document.documentElement);
  const known = new Map<Token, string>();
  const colours: Colours = {
    of: (token) => {
      let value = known.get(token);
      if (value === undefined) {
        value = style.getPropertyValue(`--${token}`).trim();
        known.set(token, value);
      }
      return value;
    },
    sequential: SCALES[theme].sequential.map(parseHex),
    diverging: SCALES[theme].diverging.map(parseHex),
  };
  cached = { theme, colours };
  return colours;
}

/** The colour at `share` (0 to 1) of a scale. */
export function onScale(scale: Rgb[], share: number): Rgb {
  const at = Math.min(1, Math.max(0, share)) * (scale.length - 1);
  const i = Math.min(scale.length - 2, Math.floor(at));
  const f = at - i;
  const [a, b] = [scale[i], scale[i + 1]];
  return [0, 1, 2].map((c) => Math.round(a[c] + (b[c] - a[c]) * f)) as Rgb;
}

export function cssRgb([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}

/** Black or white, whichever is more readable on `colour`. */
export function inkOn(colour: Rgb): string {
  const [r, g, b] = colour.map((c) => {
    const x = c / 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  });
  // At this luminance both have a contrast of 4.58 to 1.
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#FFFFFF";
}

export function parseHex(hex: string): Rgb {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as Rgb;
}
