/** What is wrong with the page itself: no server, another dump, an operator that is not there. */

import { lookAgain, useHealth } from "./connection";
import { t } from "./texts";

export function Banner({ missing = null }: { missing?: string | null }) {
  const health = useHealth();
  const words = health === "lost" ? t.lost : health === "changed" ? t.changed : missing;
  if (words === null) return null;
  return (
    <div class="banner" role="alert">
      <span>{words}</span>
      {health !== "fine" && (
        <button
          type="button"
          class="quiet"
          onClick={health === "lost" ? lookAgain : () => location.reload()}
        >
          {t.try_again}
        </button>
      )}
    </div>
  );
}
