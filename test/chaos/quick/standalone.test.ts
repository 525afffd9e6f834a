import { describeQuickChaos } from './describe-quick-chaos.js';

describeQuickChaos('standalone');
