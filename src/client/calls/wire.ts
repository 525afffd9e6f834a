/** Stands in for the schemas of the service until they are there. */
interface Refusal {
  readonly status: 400 | 403 | 500 | 503;
  readonly error: string;
  readonly retryAfter?: number | undefined;
}
export interface CheckElement {
  readonly key: string;
  readonly maxRequests?: number | undefined;
  readonly maxRequestsInQueue?: number | undefined;
}
export type CheckResult =
  | { readonly status: 200; readonly request_id: string }
  | { readonly status: 429; readonly error: string; readonly retryAfter: number }
  | Refusal;
export interface ReleaseElement {
  readonly key: string;
  readonly request_id: string;
}
export type ReleaseResult =
  { readonly status: 200 } | { readonly status: 404; readonly error: string } | Refusal;
