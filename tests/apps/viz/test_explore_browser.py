"""The page in a browser: pytest -m browser, with Chromium and its driver."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from oracles import power_series, weight_matrix
from torch_geometric.data import Data
from torch_geometric.utils import grid

from pyg_topomask.apps.viz import explore
from pyg_topomask.masks import GRFMask, HopMask
from pyg_topomask.transforms import AddGridShape

pytestmark = pytest.mark.browser

F = np.array([[1.0, 0.6, 0.3], [1.0, -0.5, 0.2]])
SETTINGS = {'p_halt': 0.2, 'max_walk_length': 2}


def four_by_five() -> Data:
    (edge_index, _) = grid(4, 5)
    return AddGridShape((4, 5))(Data(edge_index=edge_index, num_nodes=20))


def masks() -> dict[str, Any]:
    walks = GRFMask(heads=2, num_walks=8, modulation=torch.from_numpy(F).float(), **SETTINGS)
    return {'walks <b>': walks, 'hops': HopMask(max_hops=2, f='decay')}


@pytest.fixture(scope='module')
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    programs = [shutil.which('chromium') or shutil.which('google-chrome'), shutil.which('chromedriver')]
    assert all(programs), 'the browser tests need Chromium and its driver: apt-get install chromium chromium-driver'
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for argument in (
        'headless',
        'no-sandbox',
        'disable-gpu',
        'disable-dev-shm-usage',
        'no-first-run',
        'disable-background-networking',
        'disable-component-update',
        'disable-sync',
        'window-size=1280,1500',
        f'user-data-dir={tmp_path_factory.mktemp("browser")}',
    ):
        options.add_argument(f'--{argument}')
    options.set_capability('goog:loggingPrefs', {'performance': 'ALL', 'browser': 'ALL'})
    driver = webdriver.Chrome(options=options, service=Service(programs[1]))
    driver.set_page_load_timeout(120)
    yield driver
    driver.quit()


@pytest.fixture(scope='module')
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp('page') / 'page.html'
    explore(masks(), four_by_five(), node=7, num_walks=[2, 32]).save(path)
    return path


@pytest.fixture
def page(browser: Any, file: Path) -> Any:
    page = opened(browser, file)
    choose(page, 'head', '1')
    return page


def opened(browser: Any, path: Path) -> Any:
    """The browser, once the page has unpacked its numbers and drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(path.as_uri())
    WebDriverWait(browser, 60).until(lambda page: page.find_element('id', 'exact_title').text)
    return browser


def drawn(page: Any, plot: str) -> np.ndarray:
    """The entries that the nodes of a plot have as colours; of the star, which has none, NaN."""
    nodes = page.execute_script(f"""
        return [...document.querySelectorAll('#{plot} circle.node')].map(({{dataset}}) => [dataset.place, dataset.entry]);
    """)
    row = np.full(20, np.nan)
    for place, entry in nodes:
        row[int(place)] = float(entry)
    return row


def shares(page: Any) -> list[float]:
    """The shares of the exact row, or the only one, that are drawn as bars."""
    script = "return [...document.querySelectorAll('#distance rect')].map(({dataset}) => [dataset.of, dataset.share])"
    return [float(share) for of, share in page.execute_script(script) if of != 'estimate']


def table(page: Any) -> dict[int, list[float]]:
    """The entries that the table lists, by node."""
    lines = [line.split() for line in page.find_element('id', 'row').text.splitlines()[1:]]
    return {int(node): [float(number) for number in numbers] for node, _, *numbers in lines}


def move(page: Any, slider: str, step: int) -> None:
    """Presses an arrow key on a slider."""
    from selenium.webdriver.common.keys import Keys

    page.find_element('id', slider).send_keys(Keys.RIGHT if step > 0 else Keys.LEFT)


def choose(page: Any, name: str, option: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(page.find_element('id', name)).select_by_visible_text(option)


def click_node(page: Any, node: int, plot: str = 'exact') -> None:
    """Clicks where the plot draws the node."""
    page.find_element('css selector', f'#{plot} .node[data-place="{node}"]').click()


def exact(head: int = 0) -> np.ndarray:
    series = power_series(weight_matrix(four_by_five(), 'sym'), F[head])
    return series @ series.T


def estimate(num_walks: int, head: int = 0) -> np.ndarray:
    mask = GRFMask(heads=2, num_walks=num_walks, modulation=torch.from_numpy(F).float(), **SETTINGS)
    return mask(four_by_five()).to_dense()[head].detach().double().numpy()


def assert_row(page: Any, node: int, expected: np.ndarray, plot: str = 'exact') -> None:
    others = np.arange(20) != node
    np.testing.assert_allclose(drawn(page, plot)[others], expected[node][others], rtol=1e-5, atol=1e-6)


def test_a_click_shows_the_row_of_the_node(page: Any) -> None:
    assert page.find_element('id', 'exact_title').text == 'Exact: row 7 of walks <b>'
    assert_row(page, 7, exact())
    click_node(page, 13)
    assert page.find_element('id', 'exact_title').text == 'Exact: row 13 of walks <b>'
    assert page.find_element('id', 'node').get_attribute('value') == '13'
    assert_row(page, 13, exact())
    assert_row(page, 13, estimate(8), 'estimate')
    listed, largest = table(page), np.argsort(-np.abs(exact()[13]))[:6]
    assert listed[13][0] == pytest.approx(exact()[13, 13], rel=1e-3)
    for node in largest[:3]:
        entries = exact()[13, node], estimate(8)[13, node]
        assert listed[node] == pytest.approx([*entries, entries[1] - entries[0]], rel=1e-3, abs=1e-4)
    click_node(page, 0, 'estimate')
    assert_row(page, 0, exact())


def test_the_slider_shows_walks_and_errors(page: Any) -> None:
    for step, walks in ((1, 32), (-1, 8), (-1, 2)):
        move(page, 'walks', step)
        assert page.find_element('id', 'walks_value').text == str(walks)
        assert page.find_element('id', 'estimate_title').text == f'Estimate by {walks} walks per node'
        assert_row(page, 7, estimate(walks), 'estimate')
        deviation = estimate(walks) - exact()
        errors = [np.linalg.norm(d) / np.linalg.norm(e) for d, e in ((deviation[7], exact()[7]), (deviation, exact()))]
        summary = page.find_element('id', 'summary').text.replace('\u00a0', ' ')
        one, every = (f'{float(f"{100 * error:.2g}"):g} %' for error in errors)
        assert f'the estimate of this row is off by {one}, and that of all rows shown by {every}' in summary
    titles = [each.get_attribute('textContent') for each in page.find_elements('css selector', '#error circle title')]
    for walks in (2, 8, 32):
        error = np.linalg.norm(estimate(walks) - exact()) / np.linalg.norm(exact())
        assert f'{walks} walks, all rows shown: {float(f"{100 * error:.2g}"):g}\u00a0%' in titles


def test_head_and_mask_are_chosen(page: Any) -> None:
    choose(page, 'head', '2')
    assert_row(page, 7, exact(head=1))
    assert_row(page, 7, estimate(8, head=1), 'estimate')
    others = np.arange(20) != 7
    choose(page, 'mask', 'hops')
    assert page.find_element('id', 'exact_title').text == 'Row 7 of hops'
    row, column = np.divmod(np.arange(20), 5)
    hops = np.maximum(abs(row - row[7]), abs(column - column[7]))  # diagonal edges too
    np.testing.assert_allclose(drawn(page, 'exact')[others], np.where(hops <= 2, 0.5**hops, 0)[others])
    expected = np.array([0.5**d * (hops == d).sum() for d in range(3)])
    assert shares(page)[:3] == pytest.approx(expected / expected.sum())
    assert expected[:2].sum() < 0.9 * expected.sum()
    assert '90 % of its weight is within 2 hops' in page.find_element('id', 'summary').text.replace('\u00a0', ' ')
    assert not page.find_element('id', 'estimate').is_displayed()
    assert not page.find_element('id', 'walks').is_displayed()


def test_a_number_that_is_typed_chooses_a_node(page: Any) -> None:
    for typed, shown in (('3', 3), ('99', 3)):
        field = page.find_element('id', 'node')
        field.clear()
        field.send_keys(f'{typed}\t')
        assert page.find_element('id', 'exact_title').text == f'Exact: row {shown} of walks <b>'


def test_nodes_are_chosen_by_their_names(browser: Any, tmp_path: Path) -> None:
    labels = [f'street {node} <b>' for node in range(20)]
    explore(masks(), four_by_five(), node=7, num_walks=[2], labels=labels).save(tmp_path / 'page.html')
    page = opened(browser, tmp_path / 'page.html')
    assert page.find_element('id', 'exact_title').text == 'Exact: row street 7 <b> of walks <b>'
    field = page.find_element('id', 'node')
    field.clear()
    field.send_keys('street 3 <b>\t')
    assert page.find_element('id', 'exact_title').text == 'Exact: row street 3 <b> of walks <b>'
    assert page.find_element('css selector', '#row td').text == 'street 3 <b>'


def test_what_to_do_about_a_large_error(page: Any) -> None:
    summary = page.find_element('id', 'summary').text.replace('\u00a0', ' ')
    walks = re.search(r'For an error of 10 %, use about (\d+) walks per node \(num_walks: \1\), or PowerSeries', summary)
    assert walks is not None
    assert int(walks[1]) > 8


def test_the_colors_end_at_the_largest_entry_of_another_node(page: Any) -> None:
    nodes = page.find_elements('css selector', '#exact circle.node')
    fills = {int(node.get_attribute('data-place')): node.get_attribute('fill') for node in nodes}
    others = np.where(np.arange(20) == 7, 0, exact()[7])
    assert exact()[7, 7] > others.max()
    assert fills[int(others.argmax())] == 'rgb(8, 29, 88)'  # the darkest


@pytest.mark.parametrize('width', [390, 1280])
def test_the_page_fits_its_window_after_any_choice_and_loads_nothing(browser: Any, width: int, tmp_path: Path) -> None:
    from selenium.webdriver.support.ui import Select

    names = masks() | {'M' * 60: HopMask(4, 3, torch.rand(4, 4))}
    labels = [f'{node}' * 30 for node in range(20)]
    explore(names, four_by_five(), num_walks=[2, 32], labels=labels, title='T' * 200).save(tmp_path / 'page.html')
    for log in ('performance', 'browser'):
        browser.get_log(log)
    size = {'width': width, 'height': 1500, 'deviceScaleFactor': 1, 'mobile': False}
    browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', size)  # a window is at least 500 pixels wide
    page = opened(browser, tmp_path / 'page.html')
    page.execute_script("document.querySelector('details').open = true")
    seen = 0
    for choice, event in (('mask', 'change'), ('head', 'change'), ('walks', 'input')):
        for mask in range(3):
            Select(page.find_element('id', 'mask')).select_by_index(mask)
            last = page.execute_script(
                f"const {{options, max}} = $('{choice}'); return options ? options.length - 1 : Number(max)"
            )
            for value in range(last + 1):
                page.execute_script(f"$('{choice}').value = {value}; $('{choice}').dispatchEvent(new Event('{event}'))")
                scroll, client = page.execute_script(
                    'return [document.documentElement.scrollWidth, document.documentElement.clientWidth]'
                )
                assert width - 20 < client <= width  # beside a scroll bar
                assert scroll <= client, (choice, mask, value)
                seen += 1
    assert seen > 10
    # Where a folder is named, the screenshots stay.
    shot = Path(os.environ.get('TOPOMASK_SCREENSHOTS', tmp_path)) / f'explore_{width}.png'
    assert page.save_screenshot(str(shot))
    assert shot.stat().st_size > 10_000
    page.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})
    messages = [json.loads(entry['message'])['message'] for entry in page.get_log('performance')]
    requests = [message['params']['request']['url'] for message in messages if message['method'] == 'Network.requestWillBeSent']
    mine = [url for url in requests if not url.startswith(('chrome:', 'chrome-untrusted:', 'data:', 'blob:'))]
    assert mine
    assert all(url.startswith('file:') for url in mine), mine
    assert not [entry for entry in page.get_log('browser') if entry['level'] == 'SEVERE']
