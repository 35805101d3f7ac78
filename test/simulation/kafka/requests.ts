import type { ProduceAnswer, ProduceRequest } from "../../../services/common/kafka/produce/request-patch.ts";

export type { ProduceAnswer, ProduceRequest };

/** The requests of kafkajs, as far as the simulation reads them. Offsets are texts. */
export interface JoinGroupRequest {
  readonly groupId: string;
  readonly memberId: string;
  readonly sessionTimeout: number;
  readonly rebalanceTimeout: number;
  readonly groupProtocols: readonly { readonly name: string; readonly metadata: Buffer }[];
}

export interface SyncGroupRequest {
  readonly groupId: string;
  readonly memberId: string;
  readonly generationId: number;
  readonly groupAssignment: readonly { readonly memberId: string; readonly memberAssignment: Buffer }[];
}

export interface CommitRequest {
  readonly groupId: string;
  readonly memberId: string;
  readonly groupGenerationId: number;
  readonly topics: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number; readonly offset: string }[];
  }[];
}

export interface OffsetFetchRequest {
  readonly groupId: string;
  readonly topics: readonly { readonly topic: string; readonly partitions: readonly { readonly partition: number }[] }[];
}

export interface FetchRequest {
  readonly topics: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number; readonly fetchOffset: string }[];
  }[];
}

export interface FetchAnswer {
  readonly responses: readonly { readonly topicName: string; readonly partitions: readonly object[] }[];
}
