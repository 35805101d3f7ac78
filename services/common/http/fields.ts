import { z } from "zod";
import { addressForm, parseAddress } from "../messages/address.ts";
import { parseTokenId, tokenIdForm } from "../messages/token-id.ts";

/** An address in any case; comes out in lower case. */
export const addressSchema = z
  .string()
  .transform((text, context) => parseAddress(text) ?? fail(context, "address", addressForm))
  .meta({ pattern: "^0x[0-9a-fA-F]{40}$", examples: ["0xb47e3cd837ddf8e4c57f05d70ab865de6e193bbb"] });

/** What an address looks like in answers. */
export const knownAddressSchema = z.string().regex(/^0x[0-9a-f]{40}$/);

/** From one to `max` token ids. All are looked at in one go: a check for each of a thousand texts costs more than the texts. */
export function tokenIdsSchema(max: number) {
  return z
    .array(z.string().meta({ pattern: "^(0|[1-9][0-9]{0,77})$", examples: ["1"] }))
    .min(1)
    .max(max)
    .check(({ value, issues }) => {
      for (const [index, text] of value.entries()) {
        if (parseTokenId(text) !== undefined) continue;
        issues.push({ code: "custom", path: [index], input: text, message: tokenIdForm, params: { rule: "token_id" } });
      }
    });
}

/** Makes a transformation fail for `rule`, which a problem then names. */
export function fail(context: z.RefinementCtx, rule: string, message: string): never {
  context.addIssue({ code: "custom", message, params: { rule } });
  return z.NEVER;
}
