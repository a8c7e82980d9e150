// SPDX-License-Identifier: Apache-2.0
// Starts a report: the profile is in the page.
'use strict';

const viewer = new Viewer();

viewer.load(JSON.parse(document.getElementById('profile').textContent), true);
