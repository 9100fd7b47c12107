import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// The page holds Preact, whose licence asks to be kept with every copy.
const licence = readFileSync(new URL("node_modules/preact/LICENSE", import.meta.url), "utf8");

// The server embeds the files by name, so names are fixed and there is one chunk of each kind.
export default defineConfig({
  base: "./",
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
