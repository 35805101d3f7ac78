import type { MetadataApi } from "../../../services/fetcher/adapters/metadata-api.ts";
import { simulatedMetadataApi } from "../surroundings.ts";

/** Stands for services/fetcher/adapters/metadata-api.ts. */
export function createMetadataApi(): MetadataApi {
  return simulatedMetadataApi();
}
