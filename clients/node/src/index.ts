export { SluiceClient } from './client.js';
export type * from './decision.js';
export * from './errors.js';
export * from './limited-fetch.js';
export type * from './options.js';
export * from './rate-limit.js';
