import type { AddressBlock } from "../../common/http/address-guard.ts";
import type { ErrorDetail } from "./results.ts";

/** What a metadata_api_url stands for; `url` is its canonical spelling, without a slash at the end. */
export type Endpoint =
  | { readonly ok: true; readonly url: string; readonly origin: string }
  | { readonly ok: false; readonly detail: ErrorDetail; readonly block?: AddressBlock };
