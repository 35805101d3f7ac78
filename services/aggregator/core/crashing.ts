import type { CrashPoints } from "../../common/lifecycle/crash-points.ts";
import type { RefreshWrite } from "./plan.ts";
import type { Publisher, RefreshStore, TokenStore } from "./ports.ts";
import { isCompleted } from "./progress.ts";

interface Effects {
  readonly tokens: TokenStore;
  readonly refreshes: RefreshStore;
  readonly publisher: Publisher;
}

const some = (list: readonly unknown[]): boolean => list.length > 0;
const completes = (writes: readonly RefreshWrite[]): boolean => writes.some(({ progress }) => isCompleted(progress));

/** The same effects with the places between them at which a test can end the process: services/common/lifecycle/crash-points.ts. */
export function withCrashPoints({ tokens, refreshes, publisher }: Effects, { before, after }: CrashPoints): Effects {
  return {
    tokens: { ...tokens, write: after("after-token-rows", tokens.write, some) },
    refreshes: {
      ...refreshes,
      write: before("before-completion-mark", after("after-completion-mark", refreshes.write, completes), completes),
    },
    publisher: {
      publishStates: after("after-states", publisher.publishStates, some),
      publishCompletions: after("after-completion-event", publisher.publishCompletions, some),
    },
  };
}
