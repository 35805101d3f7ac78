/** How long to wait before more may be sent, milliseconds: `sentCount` in `elapsedMs` is then not above the rate. */
export function pauseMs(sentCount: number, elapsedMs: number, ratePerSecond: number): number {
  return Math.max(0, Math.ceil((sentCount * 1_000) / ratePerSecond - elapsedMs));
}
