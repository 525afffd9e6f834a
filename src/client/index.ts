export type {
  Approval,
  Decision,
  Denial,
  Peek,
  Quota,
  RequestStatus,
  WaitProgress,
} from './decision.js';
export { SluiceClient } from './client.js';
export {
  SluiceDeniedError,
  SluiceError,
  SluicePermitLostError,
  SluiceTimeoutError,
  SluiceUnavailableError,
} from './errors.js';
export { limitedFetch, type LimitedFetchOptions } from './limited-fetch.js';
export type {
  AskOptions,
  CheckOptions,
  ClientOptions,
  ListOptions,
  PeekOptions,
  PermitOptions,
  RenewOptions,
  ReportedLimits,
  PauseOptions,
  ReportOptions,
  RequestOptions,
  WaitOptions,
  WithPermitOptions,
} from './options.js';
export {
  type LimitedResponse,
  type Middleware,
  rateLimit,
  type RateLimitOptions,
} from './rate-limit.js';
