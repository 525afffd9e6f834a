"""The Python client of Sluice, a rate-limiting service with a fair queue."""

from ._aio import AsyncSluiceClient as AsyncSluiceClient
from ._client import SluiceClient as SluiceClient
from ._errors import SluiceDeniedError as SluiceDeniedError
from ._errors import SluiceError as SluiceError
from ._errors import SluicePermitLostError as SluicePermitLostError
from ._errors import SluiceTimeoutError as SluiceTimeoutError
from ._errors import SluiceUnavailableError as SluiceUnavailableError
from ._limited_calls import LimitedOptions as LimitedOptions
from ._limited_transports import AsyncLimitedTransport as AsyncLimitedTransport
from ._limited_transports import LimitedTransport as LimitedTransport
from ._permit import Permit as Permit
from ._protocol import Approval as Approval
from ._protocol import CheckOptions as CheckOptions
from ._protocol import ClientOptions as ClientOptions
from ._protocol import Decision as Decision
from ._protocol import Denial as Denial
from ._protocol import Peek as Peek
from ._protocol import PermitOptions as PermitOptions
from ._protocol import Quota as Quota
from ._protocol import WaitOptions as WaitOptions
from ._protocol import WaitProgress as WaitProgress
from ._remaining_reports import ReportedLimits as ReportedLimits
from ._vendor_headers import VendorRemaining as VendorRemaining
from ._vendor_headers import VendorUnit as VendorUnit
from ._vendor_headers import remaining_in as remaining_in
