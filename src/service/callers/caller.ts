export const SCOPES = ['check', 'release', 'debug', 'configure'] as const;

/** A permission that a token can give. */
export type Scope = (typeof SCOPES)[number];

/** The owner of a known token. */
export interface Caller {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** The part of the waiting places that it may take, if the file says so. */
  readonly waitingShare: number | undefined;
  /** Whether it may touch a key. */
  readonly mayUse: (key: string) => boolean;
  /** Whether no pattern restricts its keys. */
  readonly mayUseAll: boolean;
}
