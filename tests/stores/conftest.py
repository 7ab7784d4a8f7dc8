from tests.runtime.conftest import make_door as make_door
