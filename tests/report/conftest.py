"""An audit and its page, read once for each file of tests."""

import pytest
from sample_audit import sample_audit
from sample_page import pictures
from sample_page import read

from alim_keras.report import html


@pytest.fixture(scope="module")
def audit():
    return sample_audit(noise=0.4)


@pytest.fixture(scope="module")
def text(audit):
    return html.page(audit, pictures)


@pytest.fixture(scope="module")
def page(text):
    return read(text)
