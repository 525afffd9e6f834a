import { describeQuickChaos } from '../support/chaos/describe-quick-chaos.js';

describeQuickChaos('cluster');
