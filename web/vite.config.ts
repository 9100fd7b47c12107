import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

// The page holds Preact, whose licence asks to be kept with every copy.
const licence = readFileSync(new URL("node_modules/preact/LICENSE", import.meta.url), "utf8");

/**
 * Writes the document of the report: the page's own, with places for what is set into it. Its policy
 * names script and style by their digests, and allows nothing else.
 */
function reportDocument(): Plugin {
  const dist = new URL("dist/", import.meta.url);
  const read = (name: string) => readFileSync(new URL(name, dist), "utf8");
  const digest = (name: string) =>
    `'sha256-${createHash("sha256").update(read(name)).digest("base64")}'`;
  return {
    name: "report-document",
    apply: "build",
    closeBundle() {
      const policy = [
        "default-src 'none'",
        `script-src ${digest("assets/page.js")}`,
        `style-src ${digest("assets/page.css")}`,
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
      ];
      const meta = `<meta http-equiv="content-security-policy" content="${policy.join("; ")}" />`;
      const data = '<script type="application/octet-stream" id="opscope-data">{DATA}</script>';
      const script = '<script type="module">{SCRIPT}</script>';
      const changes: [RegExp, string][] = [
        [/ *<script type="module"[^>]*><\/script>\n/, ""],
        [/<link rel="stylesheet"[^>]*>/, "<style>{STYLE}</style>"],
        [/(<meta charset="utf-8" \/>)/, `$1\n    ${meta}`],
        [/<title>Opscope<\/title>/, "<title>Opscope report</title>"],
        [/( *)<\/body>/, `$1  ${data}\n$1  ${script}\n$1</body>`],
      ];
      let page = read("index.html");
      for (const [place, part] of changes) {
        if (!place.test(page)) throw new Error(`index.html has no ${place}`);
        page = page.replace(place, part);
      }
      writeFileSync(new URL("report.html", dist), page);
    },
  };
}

// The server embeds the files by name, so names are fixed and there is one chunk of each kind.
export default defineConfig({
  base: "./",
  plugins: [reportDocument()],
  build: {
    target: "es2022",
    outDir: "dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    sourcemap: false,
    rolldownOptions: {
      output: {
        entryFileNames: "assets/page.js",
        chunkFileNames: "assets/page-[name].js",
        assetFileNames: "assets/page[extname]",
        postBanner: `/*!\nPreact\n${licence.trim()}\n*/`,
      },
    },
  },
});
