import { hash } from "node:crypto";
import type { Dispatcher } from "undici";
import type { Clock } from "../../common/clock.ts";
import { excerptBytes, excerptOf } from "../core/excerpt.ts";
import { readMetadata } from "../core/metadata-body.ts";
import { type CallFailed, type CallResult, detailOfStatus, type ErrorDetail } from "../core/results.ts";
import { retryAfterMs } from "../core/retry-after.ts";
import { BodyBuffer } from "./body-buffer.ts";
import { ConnectionFailure } from "./connector.ts";

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2];

/** The same for all calls. */
export interface ExchangeSurroundings {
  readonly clock: Clock;
  readonly bodyCapBytes: number;
  isLate(exchange: Exchange): boolean;
  /** Bytes of bodies that are kept in memory; negative when they are let go. */
  held(bytes: number): void;
}

export interface ExchangeOptions {
  readonly surroundings: ExchangeSurroundings;
  /** Bytes that came over it for this call, whatever they are. */
  readonly connection: { readonly receivedBytes: number };
  /** Called once. `sound`: the connection may serve another call. */
  settled(exchange: Exchange, result: CallResult, sound: boolean): void;
}

/** What a host could make us work for without sending much: each costs microseconds of a loop that serves everybody. */
const limits = { pieces: 16_384, interimAnswers: 16, framingBytes: 262_144 };

/**
 * One request and its answer, as undici tells of it. Ends once: with the whole body in time, or at the first thing that goes wrong,
 * and then its connection is not used again.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #surroundings: ExchangeSurroundings;
  readonly #connection: ExchangeOptions["connection"];
  readonly #settled: ExchangeOptions["settled"];
  readonly #startedAtMs: number;
  readonly #monotonicMs: number;
  readonly #body = new BodyBuffer();
  #bodyBytes = 0;
  #pieceCount = 0;
  #interimCount = 0;
  #status: number | null = null;
  #retryAfterMs: number | undefined;
  #ended = false;

  constructor({ surroundings, connection, settled }: ExchangeOptions) {
    this.#surroundings = surroundings;
    this.#connection = connection;
    this.#settled = settled;
    this.#startedAtMs = surroundings.clock.nowMs();
    this.#monotonicMs = surroundings.clock.monotonicMs();
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (this.#surroundings.isLate(this)) this.expire();
    if (this.#ended) return;
    if (status < 200) this.#onInterim();
    else this.#onAnswer(status, headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.#ended) return;
    this.#pieceCount += 1;
    this.#bodyBytes += piece.length;
    if (this.#status === 200 || this.#body.length < excerptBytes) {
      this.#body.add(piece);
      this.#surroundings.held(piece.length);
    }
    if (this.#bodyBytes > this.#surroundings.bodyCapBytes) this.#fail("body_too_large");
    else if (this.#pieceCount > limits.pieces) this.#fail("protocol");
  }

  onResponseEnd(): void {
    if (this.#surroundings.isLate(this)) this.expire();
    if (this.#ended) return;
    if (this.#status === 200) this.#read(this.#body.bytes());
    else this.#fail("unexpected_status", { sound: true });
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#ended) return;
    const block = error instanceof ConnectionFailure ? error.block : undefined;
    this.#fail(detailOfError(error), block === undefined ? {} : { block });
  }

  expire(): void {
    if (!this.#ended) this.#fail("timeout");
  }

  /** The parser drops chunk extensions without a word: bytes that count nowhere else, and may go on until the deadline. */
  look(): void {
    if (this.#ended || this.#connection.receivedBytes <= this.#surroundings.bodyCapBytes + limits.framingBytes) return;
    this.#fail(this.#status === null ? "protocol" : "body_too_large");
  }

  /** 103 and the like: not the answer yet. */
  #onInterim(): void {
    this.#interimCount += 1;
    if (this.#interimCount > limits.interimAnswers) this.#fail("protocol");
  }

  #onAnswer(status: number, headers: Headers): void {
    this.#status = status;
    if (status !== 429 && status !== 503) return;
    this.#retryAfterMs = retryAfterMs(first(headers["retry-after"]), first(headers.date), this.#surroundings.clock.nowMs());
  }

  #read(body: Buffer): void {
    const read = readMetadata(body);
    if (read.ok) this.#end({ ok: true, text: read.text, contentHash: hash("sha256", body, "hex"), ...this.#measured() }, true);
    else this.#fail(read.detail, { sound: true });
  }

  /** A status other than 200 has been the answer from the moment it was there: `detail` tells how a 200, or no status, ended. */
  #fail(detail: ErrorDetail, { sound = false, block }: { sound?: boolean; block?: CallFailed["block"] } = {}): void {
    const refused = this.#status !== null && this.#status !== 200;
    const result: CallFailed = {
      ok: false,
      detail: refused ? detailOfStatus(this.#status ?? 0) : detail,
      status: this.#status,
      excerpt: this.#status === null ? null : excerptOf(this.#body.bytes()),
      ...(this.#retryAfterMs === undefined ? {} : { retryAfterMs: this.#retryAfterMs }),
      ...(block === undefined ? {} : { block }),
      ...this.#measured(),
    };
    this.#end(result, sound);
  }

  #end(result: CallResult, sound: boolean): void {
    this.#ended = true;
    this.#surroundings.held(-this.#body.length);
    this.#settled(this, result, sound);
  }

  #measured() {
    const durationMs = this.#surroundings.clock.monotonicMs() - this.#monotonicMs;
    return { startedAtMs: this.#startedAtMs, durationMs, bodyBytes: this.#bodyBytes };
  }
}

function first(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** By the codes of undici, of its parser (HPE_…) and of the operating system. */
function detailOfError(error: Error & { code?: string }): ErrorDetail {
  if (error instanceof ConnectionFailure) return error.detail;
  if (error.code === "UND_ERR_HEADERS_OVERFLOW") return "headers_too_large";
  if (error.code === "UND_ERR_SOCKET") return /^bad /.test(error.message) ? "protocol" : "reset";
  if (error.code === undefined || /^(HPE_|UND_ERR_)/.test(error.code)) return "protocol";
  return "reset";
}
