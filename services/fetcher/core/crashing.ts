import type { CrashPoints } from "../../common/lifecycle/crash-points.ts";
import type { PipelinePorts } from "./ports.ts";

type Steps = Pick<PipelinePorts, "call" | "deliver">;

/** The same steps with the places around them at which a test can end the process: services/common/lifecycle/crash-points.ts. */
export function withCrashPoints({ call, deliver }: Steps, { before, amid, after }: CrashPoints): Steps {
  const retried = after("after-retry-produce", deliver, ({ kind }) => kind === "retry");
  return {
    call: before("before-fetch", amid("mid-fetch", after("after-fetch", call))),
    deliver: after("after-outcome", retried, ({ kind }) => kind === "outcome"),
  };
}
