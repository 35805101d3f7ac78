/** Gives back a function that makes what the given one makes, with a bug in it. */
export type Spoil<F> = (make: F) => F;

/**
 * A bug that can be switched on. `spoil` names functions by which services make their parts (module-replacement.ts): what
 * they make goes through here. Nothing in the services knows of it.
 */
export interface Defect {
  readonly name: string;
  /** The text with which it is found: the invariant, mostly. */
  readonly foundAs: RegExp;
  readonly spoil: Readonly<Record<string, (make: never) => unknown>>;
}
