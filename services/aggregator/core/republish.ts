import { PoisonRecordError } from "../../common/errors.ts";
import type { BatchHandler, DecodedRecord } from "../../common/kafka/contracts.ts";
import { parseAddress } from "../../common/messages/address.ts";
import type { TokenOutcome, TokenState } from "../../common/messages/records.ts";
import { parseTokenId } from "../../common/messages/token-id.ts";
import type { Publisher, TokenAddress } from "./ports.ts";

/** The stored rows of these tokens, as they were published; a token without content is absent. */
export type LoadStates = (tokens: readonly TokenAddress[]) => Promise<readonly TokenState[]>;

export interface RepublishingParts {
  /** Takes the outcomes of a batch. */
  readonly outcomes: BatchHandler<TokenOutcome>;
  readonly loadStates: LoadStates;
  readonly publisher: Pick<Publisher, "publishStates">;
  /** What became of orders, once it is acknowledged. */
  readonly report: (counts: { readonly publishedCount: number; readonly unknownCount: number }) => void;
}

/** An order is small, what it publishes is not: this many bodies of up to 256 KiB are in memory at once. */
const tokensAtOnce = 32;

/**
 * Carries out the orders among the outcomes (`republish`): the stored row of a token is published with its stored version. Writes
 * nothing. After the outcomes of the batch, those behind an order included: the row that is read then is the newest there is, and
 * what is published last for a key is what the compacted topic keeps.
 */
export function withRepublishing(parts: RepublishingParts): BatchHandler<TokenOutcome> {
  return async (records, context) => {
    const orders = records.filter(({ value }) => value.republish === true);
    if (orders.length === 0) return parts.outcomes(records, context);
    const tokens = orders.map(tokenOf);
    const outcomes = records.filter(({ value }) => value.republish !== true);
    if (outcomes.length > 0) await parts.outcomes(outcomes, context);
    for (let start = 0; start < tokens.length; start += tokensAtOnce) {
      const some = tokens.slice(start, start + tokensAtOnce);
      const states = await parts.loadStates(some);
      await parts.publisher.publishStates(states, context);
      parts.report({ publishedCount: states.length, unknownCount: some.length - states.length });
    }
  };
}

/** Throws PoisonRecordError where an order could name a token of another partition: then it would have two writers. */
function tokenOf({ key, value }: DecodedRecord<TokenOutcome>): TokenAddress {
  const { collection_address, token_id } = value;
  const flaw = [
    parseAddress(collection_address) !== collection_address && "collection_address is not an address",
    key !== collection_address && "the key is not the collection",
    parseTokenId(token_id) === undefined && "token_id is not a token id",
  ].find((found) => found !== false);
  if (flaw !== undefined) throw new PoisonRecordError(`token.outcome: an order to publish again: ${flaw}`);
  return { collection_address, token_id };
}
