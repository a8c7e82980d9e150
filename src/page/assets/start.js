// SPDX-License-Identifier: Apache-2.0
// A report: the page has its profile in itself.
'use strict';

const viewer = new Viewer();

viewer.load(JSON.parse(document.getElementById('profile').textContent));
