import { describeRequestIds } from '../../support/behaviour/request-ids.js';
import { createMemoryHarness, overHttp } from '../../support/limiter-harness.js';

describeRequestIds('the embedded limiter', createMemoryHarness, 'direct');
describeRequestIds('the embedded limiter over HTTP', overHttp(createMemoryHarness), 'http');
