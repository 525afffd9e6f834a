import { ReplyError } from 'ioredis';

// ioredis declares its class of error replies as `any`.
const ErrorReply = ReplyError as new (message: string) => Error;

/** Errors of a call to Redis, one of each kind: see `src/redis/availability/store-errors.ts`. */
export const FAILURES = {
  passing: new ErrorReply('LOADING Redis is loading the dataset in memory'),
  notSent: new Error("Stream isn't writeable and enableOfflineQueue options is false"),
  demoted: new ErrorReply("READONLY You can't write against a read only replica."),
  moving: new ErrorReply('MOVED 3999 127.0.0.1:6381'),
  refused: new ErrorReply('NOREPLICAS Not enough good replicas to write.'),
  full: new ErrorReply("OOM command not allowed when used memory > 'maxmemory'."),
  unknown: new Error('Connection is closed.'),
  fault: new ErrorReply('WRONGTYPE Operation against a key holding the wrong kind of value'),
} as const;
