/**
 * Notices about the page itself: no server, another dump, an unknown operator, or a dump that is
 * still being read.
 */

import { lookAgain, useHealth } from "./connection";
import { visible } from "./names";
import { useNews, type News, type RunProgress } from "./news";
import { t } from "./texts";

export function Banner({ missing = null }: { missing?: string | null }) {
  const health = useHealth();
  const news = useNews();
  // Requests that were under way when the dump was removed say that it has changed.
  const is_removed = health === "changed" && news?.state === "removed";
  const words = health === "lost" ? t.lost : health === "changed" ? t.changed : missing;
  if (words === null || is_removed) return <Progress news={news} />;
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

/** How much of the dump has been read, or that a run is still writing it. */
function Progress({ news }: { news: News | null }) {
  if (news === null || news.state === "whole") return null;
  const is_failed = news.state === "failed" || news.state === "removed";
  const run = news.run ?? null;
  return (
    <div class={is_failed ? "banner" : "banner calm"} role={is_failed ? "alert" : "status"}>
      <span>
        {news.state === "removed"
          ? t.removed
          : is_failed
            ? t.run_failed(news.message ?? "")
            : news.state === "running"
              ? t.run_goes_on
              : t.reading(news.n_done, news.n)}
      </span>
      {run && <RunWords run={run} />}
      {news.state === "reading" && <progress value={news.n_done} max={news.n} />}
    </div>
  );
}

/** `resnet18: step 3 of 100, about 2 min left` */
function RunWords({ run }: { run: RunProgress }) {
  const { title, step, n_steps, seconds_left } = run;
  if (step === null || n_steps < 2) return <bdi class="strong">{visible(title)}</bdi>;
  return (
    <>
      <span>
        <bdi class="strong">{visible(title)}</bdi>: {t.step_of(step + 1, n_steps)}
        {seconds_left !== null && `, ${t.time_left(seconds_left)}`}
      </span>
      <progress value={step + 1} max={n_steps} />
    </>
  );
}
