// SPDX-License-Identifier: Apache-2.0
// What the page says and how it looks. viewer_shows.mjs SMALL.html EMPTY.html DIFF.html WAITS.html WALL.html, which are make_profile's.
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { all, browser, check, click, colour, load, open, pages, place, settled, tab, text, totalsOf } from './viewer_tab.mjs';

const [small, empty, diff, waits, wall] = pages;
const BIDI = /[\u202a-\u202e\u2066-\u2069\u200e\u200f]/;

// The small profile with another name for its function "spin", given to the page as another source would give it.
const rename = name => tab.evaluate(name => {
	const data = JSON.parse(document.getElementById('profile').textContent);

	data.strings[data.strings.indexOf('spin')] = name;
	viewer.load(data);
}, name);

await all(async () => {
	await check('the page opens from a file without complaints, requests or dialogs', () => open(small));
	await check('the head tells what was measured, and what was lost', async () => {
		const head = await tab.textContent('header'), tallies = await tab.textContent('#tallies');

		for (const fact of ['made-up: cpu-clock at 49 Hz', '2 CPUs', '10 s', 'Linux 6.1.0-made-up'])
			assert.ok(head.includes(fact), head);
		for (const [term, value] of [['samples', 128], ['filtered', 881], ['lost', 3], ['stacks missed', 7], ['stacks cut', 6]])
			assert.match(tallies, new RegExp(`${term}${value}(?!\\d)`));
		assert.match(await text('notes'), /sampled cpu-clock <b>instead<\/b>/);
		assert.equal(await tab.locator('#notes b').count(), 0);
		assert.equal(await text('more'), '3 lost, 7 stacks missed, 6 stacks cut, 1 warning');
		await tab.click('#more');
		assert.match(await text('account'), /Commandsonde profile -F 49 -o <a&b>.html 10.*Lost3 ring full.*128 stacks unwound once more/);
		await tab.click('#more');
		assert.ok(await tab.isHidden('#account'));
	});
	await check('histograms are shown where there are any, as text', async () => {
		assert.ok(await tab.isHidden('#histograms'));
		await tab.evaluate(() => {
			const data = JSON.parse(document.getElementById('profile').textContent);

			data.histograms = [['blocked time (us): 3 in all', '[2, 4)  3 |@@|'], ['<b>other</b>\u202e']];
			viewer.load(data);
		});
		await tab.click('#histograms summary');
		assert.equal(await tab.textContent('#histograms pre'), 'blocked time (us): 3 in all\n[2, 4)  3 |@@|\n\n<b>other</b>?');
		await tab.click('#histograms summary');
		await tab.evaluate(() => viewer.load(JSON.parse(document.getElementById('profile').textContent)));
		assert.ok(await tab.isHidden('#histograms'));
	});
	await check('sums of the tree are those of the account', async () => {
		assert.equal(await tab.evaluate(() => viewer.tree.total[0]), 128);
		assert.equal(await tab.evaluate(() => Math.max(...Array.from(viewer.tree.parent, (p, i) => i ? viewer.tree.end(i) - viewer.tree.end(p) : 0))), 0);
	});
	await check('hostile names are shown as the texts they are', async () => {
		const names = await tab.evaluate(() => viewer.profile.frameName);

		for (const name of ['<script>alert(1)</script>', '</script><!--', 'a;b', 'new?line?tab', '"quotes" & \'more\' \\', 'grüß 漢 🔥', '</script>', '(no name)'])
			assert.ok(names.includes(name), `${name} is not among ${names}`);
		assert.ok(!BIDI.test(await tab.evaluate(() => document.body.innerText + viewer.profile.frameName.join())));
		const { x, y } = await place('<script>alert(1)</script>');

		await tab.mouse.move(x, y);
		assert.equal(await tab.textContent('#tip b'), '<script>alert(1)</script>');
		assert.match(await text('tip'), /9 samples, 7\.0 %, 184 ms.*\/usr\/bin\/worker/);
		assert.equal(await tab.locator('#tip script').count(), 0);
	});
	await check('a name of a megabyte, an empty one and markup do no harm in any view', async () => {
		for (const name of ['x'.repeat(1 << 20), '', '<img src=x onerror=alert(1)>', '\u202egnp.exe\u202c', '__proto__', '"><script>alert(1)</script>']) {
			await rename(name);
			for (const view of ['sandwich', 'table', 'graph']) {
				await tab.click(`#tab-${view}`);
				await settled();
			}
			assert.ok((await tab.evaluate(() => document.querySelector('main').textContent)).length < 50000, name.slice(0, 20));
			assert.equal(await tab.locator('main img, main script').count(), 0);
			assert.equal(await tab.evaluate(() => viewer.tree.total[0]), 128);
		}
		await open(small);
	});
	await check('what an interpreter runs has its file in its name, and a colour and a switch of its language', async () => {
		const names = await tab.evaluate(() => viewer.profile.frameName);

		for (const name of ['<module> (main.py)', '<module> (__init__.py)', '<lambda> (<string>)', '{main}', 'List::Util::first (Util.pm)', '<b>main</b> (run.pl)', 'Py_RunMain'])
			assert.ok(names.includes(name), `${name} is not among ${names}`);
		assert.equal(names.filter(name => name === 'find (models.py)').length, 2); // one at line 12, one at 42
		assert.match(await text('legend'), /native.*kernel.*cut stack.*Python.*PHP.*Perl/);
		assert.equal(new Set(await Promise.all(['<module> (__init__.py)', 'Py_RunMain', 'php_execute_scripts', '<b>main</b> (run.pl)'].map(colour))).size, 4);
		const { x, y } = await place('<module> (__init__.py)');

		await tab.mouse.move(x, y);
		assert.match(await text('tip'), /<module> \(__init__\.py\)11 samples.*%.*ms\/srv\/app\/views\/__init__\.py:3Python/);
		await tab.mouse.move(0, 0);
		await tab.click('#more');
		assert.match(await text('account'), /python 3\.11\.2 \(1 process\), perl 5\.36\.0 \(2 processes\); stacks: 15 complete; cut short: 4 truncated; 2 frames without a name/);
		await tab.click('#more');
	});
	await check('the details tell the source and its lines', async () => {
		const { x, y } = await place('main.square');

		await tab.mouse.move(x, y);
		assert.match(await text('tip'), /10 samples.*\/src\/math\.go:11native/);
		await tab.mouse.move(0, 0);
		assert.ok(await tab.isHidden('#tip'));
	});
	await check('kernel, native code and what is not known differ in colour, light and dark', async () => {
		for (const scheme of ['light', 'dark']) {
			await open(small, scheme);
			const colours = [await colour('spin'), await colour('vfs_read'), await colour('[truncated]'), await colour('worker')];

			assert.equal(new Set(colours).size, 4, String(colours));
		}
	});
	await check('the scheme is the system\'s until it is chosen', async () => {
		const page = () => tab.evaluate(() => getComputedStyle(document.body).backgroundColor), dark = await page();

		await tab.click('#theme');
		assert.equal(await text('theme'), 'Light');
		assert.notEqual(await page(), dark);
		await tab.keyboard.press('t');
		assert.equal(await text('theme'), 'Dark');
		assert.equal(await page(), dark);
		await tab.keyboard.press('t');
		await tab.emulateMedia({ colorScheme: 'light' });
		await tab.waitForFunction(dark => getComputedStyle(document.body).backgroundColor !== dark, dark);
	});
	await check('a kind that the page does not know has a colour and a name in the legend', async () => {
		await tab.evaluate(() => {
			const data = JSON.parse(document.getElementById('profile').textContent);

			data.kinds[data.kinds.indexOf('kernel')] = 'klingon';
			viewer.load(data);
		});
		await settled();
		assert.match(await text('legend'), /native.*klingon.*process/);
		assert.notEqual(await colour('vfs_read'), await colour('spin'));
		await open(small);
	});
	await check('narrow windows scroll down, not sideways', async () => {
		for (const width of [800, 360]) {
			await tab.setViewportSize({ width, height: 640 });
			for (const view of ['sandwich', 'table', 'graph']) {
				await tab.click(`#tab-${view}`);
				assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${view} at ${width}`);
			}
		}
		await tab.setViewportSize({ width: 1280, height: 720 });
	});
	await check('on paper it is light and without controls', async () => {
		await tab.emulateMedia({ media: 'print', colorScheme: 'dark' });
		await tab.evaluate(() => dispatchEvent(new Event('beforeprint')));
		assert.ok(await tab.isHidden('#controls'));
		assert.equal(await tab.evaluate(() => document.documentElement.dataset.theme), 'light');
		assert.ok(await tab.isVisible('#graph'));
		await tab.evaluate(() => dispatchEvent(new Event('afterprint')));
		await tab.emulateMedia({ media: 'screen' });
		assert.ok(await tab.isVisible('#controls'));
		assert.equal(await tab.evaluate(() => document.documentElement.dataset.theme), 'dark');
	});
	await check('an injected script does not run', async () => {
		const page = readFileSync(small, 'utf8').replace('</footer>', '</footer><img src=x onerror="window.ran = 1"><script>window.ran = 1</script>');
		const other = await browser.newPage();

		await other.route('**/*', route => route.fulfill({ contentType: 'text/html', body: page }));
		await load('http://injected.test/', other);
		assert.equal(await other.evaluate(() => window.ran), undefined);
		assert.equal(await other.textContent('h1'), 'made-up: cpu-clock at 49 Hz'); // ours does
		await other.close();
	});
	await check('a page without samples says so', async () => {
		await open(empty);
		assert.match(await text('empty'), /No samples/);
		assert.ok(await tab.isHidden('#graph'));
		for (const key of ['Escape', 'i', '2', '3', '1', 'n'])
			await tab.keyboard.press(key);
		await tab.fill('#search', 'x');
	});
	await check('a difference is red where it grew and blue where it shrank, with numbers', async () => {
		const channels = async name => (await colour(name)).split(' ').map(Number);

		await open(diff);
		assert.ok(await tab.evaluate(() => viewer.graph.painter.rowTop(0) + ROW <= viewer.graph.painter.height), 'the root is in sight');
		assert.ok(await tab.isVisible('#scale'));
		const [red, , blue] = await channels('python3'), [redLess, , blueMore] = await channels('cc1plus');

		assert.ok(red > blue + 40, `${red} ${blue}`);
		assert.ok(blueMore > redLess + 10, `${redLess} ${blueMore}`);
		assert.ok(await tab.evaluate(() => viewer.tree.before[0] === viewer.tree.after[0]));
		const { x, y } = await place('python3');

		await tab.mouse.move(x, y);
		assert.match(await text('tip'), /before [\d,]+ samples, \d+\.\d %; after [\d,]+ samples, \d+\.\d %: \+\d+\.\d points, \+100\.0 %/);
		const gone = () => tab.evaluate(() => viewer.tree.children(0).some(node => viewer.tree.name(node) === 'cc1plus'));

		assert.ok(await gone(), 'what has ended is as wide as it was');
		await tab.selectOption('#value', 'after');
		assert.ok(!await gone());
		await tab.selectOption('#value', 'the larger');
		await tab.click('#tab-table');
		const changes = await tab.evaluate(() => viewer.table.rows.map(row => Math.abs(row.change)));

		assert.deepEqual(changes, changes.slice().sort((a, b) => b - a));
		assert.ok(await tab.evaluate(() => viewer.table.rows.slice(0, 20).some(row => row.change < 0) && viewer.table.rows.slice(0, 20).some(row => row.change > 0)));
		assert.match(await tab.innerText('#table thead'), /Change[\s\S]*Self before[\s\S]*Self after/);
	});
	await check('a difference has the names of both files, true counts, and the greatest changes in words', async () => {
		await open(diff);
		assert.match(await text('title'), /monday\.json → tuesday\.json$/);
		const [before, after] = (await text('facts')).match(/before ([\d,]+) samples, after ([\d,]+) samples/).slice(1).map(nr => Number(nr.replaceAll(',', '')));

		assert.equal(before, 2 * after); // the page's own numbers are scaled to the same sum
		assert.match(await text('answer'), /^changed most: [+−]\d+\.\d \S/);
		const { x, y } = await place('python3');

		await tab.mouse.move(x, y);
		const shown = (await text('tip')).match(/before ([\d,]+) samples, ([\d.]+) %/);

		assert.ok(Math.abs(Number(shown[1].replaceAll(',', '')) / before - Number(shown[2]) / 100) < 0.001, shown[0]);
	});
	await check('a change within the noise of counts is grey, in the graph and in the table', async () => {
		await tab.evaluate(() => {
			const data = JSON.parse(document.getElementById('profile').textContent);

			data.account.sides.forEach(side => side.nr_samples = 20);
			viewer.load(data);
		});
		await settled();
		assert.equal(await tab.evaluate(() => viewer.tree.isNoise(viewer.tree.children(0)[0])), true);
		assert.equal(await tab.evaluate(() => String(viewer.graph.painter.fillOf(viewer.tree.children(0)[0]))), await tab.evaluate(() => String(THEMES.light.same)));
		assert.match(await text('answer'), /nothing changed beyond noise/);
		await tab.click('#tab-table');
		assert.match(await tab.innerText('#table tr[data-row="0"] .noise >> nth=0'), /~$/);
		await open(diff);
		assert.equal(await tab.evaluate(() => viewer.tree.isNoise(viewer.tree.children(0)[0])), false);
	});
	await check('every label has a contrast of 4.5, in both schemes', async () => {
		for (const page of [small, diff, wall]) {
			for (const scheme of ['light', 'dark']) {
				await open(page, scheme);
				const worst = await tab.evaluate(() => {
					const light = rgb => rgb.map(value => value / 255).map(value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
						.reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
					const { painter, tree } = viewer.graph, fills = Array.from(tree.frame, (_, node) => painter.fillOf(node));

					for (const faint of fills.slice())
						fills.push(mix(faint, painter.theme.faint, 0.62));
					return Math.min(...fills.map(fill => {
						const [a, b] = [light(fill), inkOn(fill) === '#ffffff' ? 1 : 0].sort((a, b) => b - a);

						return (a + 0.05) / (b + 0.05);
					}));
				});

				assert.ok(worst >= 4.5, `${scheme}: ${worst}`);
				const texts = await tab.evaluate(() => ['.soft', '#facts', '#more', '.grown', '.shrunk', '.noise', '.part'].map(which => document.querySelector(which)).filter(Boolean).map(one => {
					const rgb = text => text.match(/[\d.]+/g).map(Number);
					let under = one;

					while (rgb(getComputedStyle(under).backgroundColor)[3] === 0)
						under = under.parentElement;
					const [a, b] = [getComputedStyle(one).color, getComputedStyle(under).backgroundColor].map(text => luminance(rgb(text).slice(0, 3))).sort((a, b) => b - a);

					return [one.id || one.className, (a + 0.05) / (b + 0.05)];
				}));

				for (const [which, contrast] of texts)
					assert.ok(contrast >= 4.5, `${scheme} ${which}: ${contrast}`);
			}
		}
	});
	await check('all time: the answer tells states and waits, each with a colour of its own, and none is a cut stack', async () => {
		await open(wall);
		assert.equal(await text('title'), 'made-up: all time of the threads');
		assert.match(await text('answer'), /10 % running, 1\.0 % ready, 89 % blocked; blocked for 57 % futex, 32 % sleep; 3 of 5 threads idle throughout/);
		assert.equal(await tab.evaluate(() => viewer.profile.kinds[viewer.profile.frameKind[viewer.profile.frameName.indexOf('[on-cpu]')]]), 'running');
		assert.match(await text('legend'), /cut stack.*on a CPU.*ready, no CPU.*blocked.*idle threads/);
		await tab.evaluate(() => viewer.graph.open(viewer.profile.idle));
		await settled();
		const colours = await Promise.all(['[on-cpu]', '[runnable]', '[blocked: futex]', '[blocked: sleep]', '[truncated]', 'main'].map(colour));

		assert.equal(new Set(colours).size, 6, String(colours));
		const striped = await tab.evaluate(() => viewer.profile.kinds.filter((kind, i) => viewer.graph.painter.striped[i]));

		assert.deepEqual([...new Set(striped)].sort(), ['mark', 'missed']);
	});
	await check('threads that wait throughout are one box, which opens; one click leaves them out', async () => {
		await open(wall);
		const names = () => tab.evaluate(() => viewer.graph.tree.rows.map(row => [...row].map(node => viewer.graph.tree.name(node))));

		assert.deepEqual((await names())[1], ['server', 'idle (3 threads)']);
		assert.equal((await names()).flat().includes('pool'), false);
		assert.equal(await tab.evaluate(() => viewer.tree.total[viewer.profile.idle]), 30e9);
		await click('idle (3 threads)');
		assert.ok((await names()).flat().includes('pool'), 'the box is open');
		await tab.locator('#answer button', { hasText: 'idle throughout' }).click();
		assert.equal(await tab.evaluate(() => viewer.tree.total[0]), 20e9);
	});
	await check('waits: the title is not the event that finds them, and the answer tells kinds', async () => {
		await open(waits);
		assert.match(await text('facts'), /^3\.34 s in 16 waits/);
		assert.match(await text('answer'), /waiting for .*% futex.*% sleep/);
		assert.match(await text('legend'), /kind of wait/);
		assert.notEqual(await colour('[futex]'), await colour('[sleep]'));
		assert.equal(await text('title'), 'made-up: time blocked');
	});
	await check('processes are named by their main thread', async () => {
		await open(wall);
		assert.deepEqual(await tab.evaluate(() => viewer.profile.programs.map(({ name, threads }) => [name, threads.length])), [['server', 5]]);
		assert.ok(await tab.evaluate(() => viewer.tree.children(viewer.tree.children(0)[0]).some(node => viewer.tree.name(node) === 'worker-1')));
	});
	await check('each function has the totals of the JSON', async () => {
		for (const page of [small, waits, wall, diff]) {
			await open(page);
			const { got, value } = await tab.evaluate(() => {
				const got = {}, isDiff = viewer.profile.isDiff;

				for (const row of functionsOf(viewer.tree)) {
					const name = viewer.profile.frameName[row.frame].replace(/ \([^)]*\)$/, ''), sums = got[name] ||= [0, 0, 0];

					sums[0] += isDiff ? row.selfAfter : row.self;
					sums[1] += isDiff ? row.after : row.total;
					sums[2]++;
				}
				return { got, value: isDiff ? 1 : viewer.value };
			}), want = totalsOf(page, value);
			let compared = 0;

			for (const [name, sums] of Object.entries(want)) {
				if (!/^[\w.:[\] ]+$/.test(name)) // hostile names are shown in another form
					continue;
				compared++;
				const [self, all, nr] = got[name] || [0, 0, 1];

				assert.deepEqual([self, nr > 1 ? sums[1] : all], sums, `${page}: ${name}`); // functions of one name may call each other
			}
			assert.ok(compared > 4, String(compared));
		}
	});
	await check('labels lose arguments and namespaces first, and are no stubs', async () => {
		await open(small);
		assert.deepEqual(await tab.evaluate(() => shortForms('std::map<int, std::string>::find(int const&) const')),
			['std::map<int, std::string>::find(int const&) const', 'std::map<int, std::string>::find const', 'std::map::find', 'map::find', 'find']);
		for (const [name, last] of [['operator()(int)', 'operator()'], ['<module> (main.py)', '<module>'], ['[libc.so.6+0x12]', '[libc.so.6+0x12]'], ['(anonymous namespace)::f(int)', 'f'],
			['net/http.(*conn).serve', 'serve'], ['a->b', 'a->b'], ['java.util.List.get', 'get'], ['operator<', 'operator<']])
			assert.equal(await tab.evaluate(name => shortForms(name).at(-1), name), last);
		const drawn = await tab.evaluate(() => {
			const { painter } = viewer.graph, fill = painter.context.fillText, texts = [];

			painter.context.fillText = text => texts.push(text);
			painter.drawNow();
			painter.context.fillText = fill;
			return texts;
		});

		assert.ok(drawn.length > 10 && drawn.some(text => / %$/.test(text)), String(drawn));
		assert.deepEqual(drawn.filter(text => text.endsWith('…') && Array.from(text).length < 6), []);
	});
	await check('on a phone the graph has most of the window', async () => {
		await tab.setViewportSize({ width: 400, height: 860 });
		for (const page of [small, waits, wall, diff]) {
			await open(page);
			assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), page);
			assert.ok((await tab.locator('#graph .scroller').boundingBox()).height > 430, page);
		}
		await tab.setViewportSize({ width: 1280, height: 720 });
	});
	await check('without an account nothing is said of samples and losses', async () => {
		await open(small);
		assert.match(await text('tallies'), /lost/);
		await tab.evaluate(() => {
			const data = JSON.parse(document.getElementById('profile').textContent);

			data.account.nr_cpus = 0;
			data.account.notes = [];
			data.account.nr_notes_refused = 0;
			viewer.load(data);
		});
		await settled();
		assert.equal(await tab.textContent('#tallies'), '');
		assert.ok(await tab.isHidden('#more'));
	});
	await check('negative sums have a width too', async () => {
		await open(small);
		await tab.evaluate(() => {
			const data = JSON.parse(document.getElementById('profile').textContent);

			data.samples.values[0] = data.samples.values[0].map(value => -value);
			viewer.load(data);
		});
		await settled();
		assert.deepEqual(await tab.evaluate(() => [viewer.tree.total[0], viewer.tree.width[0]]), [-128, 128]);
		const { x, y } = await place('gopher');

		await tab.mouse.move(x, y);
		assert.match(await text('tip'), /-14 samples, 10\.9 %/);
	});
});
