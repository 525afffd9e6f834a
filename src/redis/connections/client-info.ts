// Keeps ioredis from telling its name and version by CLIENT SETINFO: a user with few rights would need a rule for it,
// which servers before Redis 7.2 don't know. The clients that it makes for sentinels take no such option.
import { DEFAULT_REDIS_OPTIONS } from 'ioredis/built/redis/RedisOptions.js';

DEFAULT_REDIS_OPTIONS.disableClientInfo = true;
