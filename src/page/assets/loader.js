// SPDX-License-Identifier: Apache-2.0
// Unpacks the other scripts (tools/embed.py) and runs them: packed they are a third as large, in every report.
'use strict';

(async () => {
	try {
		const packed = Uint8Array.from(atob(document.getElementById('packed').textContent), letter => letter.charCodeAt(0));
		const script = document.createElement('script');

		script.textContent = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
		document.body.append(script);
	} catch (error) {
		document.getElementById('answer').textContent = `This page needs a browser of 2023 or later: ${error}`;
	}
})();
