import { describeQuickChaos } from '../chaos/quick/describe-quick-chaos.js';

describeQuickChaos('sentinel');
