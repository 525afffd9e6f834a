#!/usr/bin/env node
// `npx sluice`
import './main.js';
