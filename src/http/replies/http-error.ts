/** A request that can't be answered as asked, and what to tell the client. */
export class HttpError extends Error {
  override readonly name = 'HttpError';

  constructor(
    readonly status: 400 | 401 | 403 | 404 | 405 | 414,
    message: string,
    /** The limiter key of the request, where it has one. */
    readonly key?: string,
  ) {
    super(message);
  }
}
